// Names keep their numbers across reloads and restarts, whatever their order in the file.
#include "userspace/core/numbering.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "userspace/config/config.h"
#include "userspace/core/geometry.h"
#include "userspace/core/plan_rows.h"

namespace edgeshed::core {
namespace {

/// A file with these rooms, endpoints "e-ROOM" for each, classes "c-ROOM", one connection each.
std::string file_of(const std::vector<std::string>& names) {
  std::string text =
      "[host]\nrooms_max = 4\nendpoints_max = 4\nclasses_max = 4\n[[shard]]\nname = \"s\"\n";
  for (const auto& name : names) {
    text += "[[room]]\nname = \"" + name + "\"\nshard = \"s\"\n[[class]]\nname = \"c-" + name +
            "\"\n[[endpoint]]\nname = \"e-" + name +
            "\"\naddress = \"any\"\nport = " + std::to_string(7000 + name[0]) +
            "\nprotocol = \"opaque\"\nrooms = [\"" + name +
            "\"]\n[[connection]]\nremote = \"10.0.0.1:7\"\nendpoint = \"e-" + name +
            "\"\nclass = \"c-" + name + "\"\n";
  }
  return text;
}

Model model_of(const std::vector<std::string>& names) {
  return config::parse(file_of(names), "test.toml");
}

struct Rows {
  es_geometry geometry;
  PlanRows rows;
  explicit Rows(const Model& model)
      : geometry(derive_geometry(model.host, 1, 250)), rows(geometry) {
    const std::vector<ShardState> states(model.shards.size());
    fill_plan_rows(model, states, PlanTiming{}, {}, rows);
  }
  Numbering numbering() const { return numbering_of(rows.endpoints, rows.rooms, rows.classes); }
};

/// What must hold after any renumbering: references still name what they named.
void expect_sound(const Model& model, size_t rooms) {
  size_t found = 0;
  for (size_t i = 0; i < model.endpoints.size(); ++i) {
    const Endpoint& endpoint = model.endpoints[i];
    if (!exists(endpoint)) continue;
    ++found;
    EXPECT_EQ(endpoint.number, i + 1);
    ASSERT_EQ(endpoint.rooms.size(), 1u);
    EXPECT_EQ("e-" + model.rooms[endpoint.rooms[0]].name, endpoint.name);
    EXPECT_EQ(endpoint.stranger_room, endpoint.rooms[0]);
  }
  EXPECT_EQ(found, rooms);
  ASSERT_EQ(model.connections.size(), rooms);
  for (const Connection& connection : model.connections) {
    const std::string& room = model.rooms[connection.policy.room].name;
    EXPECT_EQ(model.endpoints[connection.key.endpoint - 1].name, "e-" + room);
    EXPECT_EQ(model.classes[connection.policy.contract_class].name, "c-" + room);
  }
}

TEST(Numbering, NamesKeepTheirNumbersWhateverTheOrder) {
  const Model live = model_of({"a", "b", "c"});
  const Rows rows(live);
  Model next = model_of({"d", "c", "a"});
  ASSERT_EQ(keep_numbers(next, rows.numbering(), rows.geometry), "");
  EXPECT_EQ(find_room(next, "a"), 0);
  EXPECT_EQ(find_room(next, "c"), 2);
  EXPECT_EQ(find_room(next, "d"), 3) << "a number that nobody has had";
  EXPECT_EQ(find_room(next, "b"), -1);
  EXPECT_EQ(find_endpoint(next, "e-c"), 3);
  EXPECT_EQ(find_class(next, "c-c"), 3);
  expect_sound(next, 3);
}

TEST(Numbering, ANumberThatChangesHandsTakesNoRecordsAlong) {
  const Model before = model_of({"a", "b", "c", "e"});
  const Rows rows(before);
  // All four numbers are taken: the new name gets the one that b gave up.
  Model next = model_of({"a", "d", "c", "e"});
  ASSERT_EQ(keep_numbers(next, rows.numbering(), rows.geometry), "");
  EXPECT_EQ(find_room(next, "d"), 1);
  for (const Connection& connection : before.connections) {
    const es_connection record = {connection.key, connection.policy};
    const bool stays = before.rooms[connection.policy.room].name != "b";
    EXPECT_EQ(refers_to_same(record, next, rows.numbering()), stays);
    EXPECT_TRUE(refers_to_same(record, next, Numbering{}));
  }
}

TEST(Numbering, WhatIsRemovedLeavesAHoleThatNobodySees) {
  const Rows rows(model_of({"a", "b", "c"}));
  Model next = model_of({"c"});
  ASSERT_EQ(keep_numbers(next, rows.numbering(), rows.geometry), "");
  ASSERT_EQ(next.rooms.size(), 3u);
  EXPECT_FALSE(exists(next.rooms[0]));
  EXPECT_EQ(find_room(next, ""), -1);
  EXPECT_EQ(find_endpoint(next, ""), 0);
  expect_sound(next, 1);

  const Rows after(next);
  EXPECT_EQ(after.rows.rooms[0].generation, 0u);
  EXPECT_EQ(after.rows.endpoints[1].generation, 0u);
  EXPECT_EQ(after.rows.endpoints[3].generation, 1u);
  EXPECT_EQ(after.rows.classes[1].generation, 0u);
  EXPECT_EQ(after.rows.classes[3].generation, 1u);
  es_ports_page page;
  fill_ports_page(next, page);
  EXPECT_EQ(page.endpoint[7000 + 'c'], 3);
  EXPECT_EQ(page.endpoint[0], 0);

  // And a restart with the same file finds the same numbers.
  Model again = model_of({"c"});
  ASSERT_EQ(keep_numbers(again, after.numbering(), after.geometry), "");
  EXPECT_EQ(find_room(again, "c"), 2);
}

TEST(Numbering, MoreThanTheMapsHoldIsRefused) {
  const Rows rows(model_of({"a", "b", "c"}));
  Model next = model_of({"a", "b", "c", "d"});
  es_geometry small = rows.geometry;
  small.rooms = 3;
  const std::string fault = keep_numbers(next, rows.numbering(), small);
  EXPECT_NE(fault.find("more rooms than the attached maps hold (3)"), std::string::npos) << fault;
  EXPECT_NE(fault.find("rooms_max"), std::string::npos) << fault;
}

TEST(Numbering, RowsHoldTheWholeHash) {
  for (const char* name : {"a", "lobby", "match-999", ""}) {
    es_plan_room row = {};
    row.stream_cap = 7;
    set_name_hash(row, name_hash(name));
    EXPECT_EQ(name_hash_of(row), name_hash(name));
    EXPECT_EQ(row.stream_cap, 7);
    EXPECT_NE(name_hash(name), 0u);
    EXPECT_LT(name_hash(name), uint64_t{1} << 56);
  }
}

TEST(Numbering, ShardsFollowTheModelThatRuns) {
  Model live;
  live.shards = {Shard{"x", 20, 4}, Shard{"y", 20, 4}};
  Model next;
  next.shards = {Shard{"z", 20, 4}, Shard{"y", 30, 4}};
  next.rooms.resize(2);
  next.rooms[0].name = "in-z";
  next.rooms[1].name = "in-y";
  next.rooms[1].shard = 1;
  keep_shard_numbers(next, live);
  EXPECT_EQ(find_shard(next, "y"), 1);
  EXPECT_EQ(next.shards[next.rooms[0].shard].name, "z");
  EXPECT_EQ(next.shards[next.rooms[1].shard].name, "y");
  EXPECT_EQ(next.shards[1].frame_budget_ms, 30);
}

}  // namespace
}  // namespace edgeshed::core
