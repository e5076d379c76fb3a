/* A whole game server: who says "hello" is a player, and gets a snapshot thirty times a second. */
#include <arpa/inet.h>
#include <edgeshed.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  struct sockaddr_in player[64], from = {.sin_family = AF_INET, .sin_port = htons(7777)};
  socklen_t size = sizeof(from);
  int peer[64], players = 0, udp = socket(AF_INET, SOCK_DGRAM, 0);
  edgeshed_session* session = edgeshed_open(&(edgeshed_options){.shard = "main"});
  int room = session ? edgeshed_room_open(session, "arena", 64) : -1;
  if (room < 0 || bind(udp, (struct sockaddr*)&from, size) != 0) return 1;
  for (unsigned tick = 0;; tick++) {
    edgeshed_tick_begin(session);
    char text[64];
    while (recvfrom(udp, text, 5, MSG_DONTWAIT, (struct sockaddr*)&from, &size) >= 0) {
      int known = 0;
      while (known < players && memcmp(&player[known], &from, sizeof(from)) != 0) known++;
      if (known < players || players == 64 || memcmp(text, "hello", 5) != 0) continue;
      player[players] = from;
      peer[players++] = edgeshed_connect(
          session, &(edgeshed_peer){.room = room, .addr = (struct sockaddr*)&from});
    }
    size_t bytes = (size_t)snprintf(text, sizeof(text), "snapshot %u", tick);
    for (int i = 0; i < players; i++)
      if (edgeshed_may_send(session, peer[i], EDGESHED_LANE_SNAPSHOT))
        sendto(udp, text, bytes, 0, (struct sockaddr*)&player[i], size);
    edgeshed_tick_end(session);
    edgeshed_event event;
    while (edgeshed_poll(session, &event)) puts(event.text);
    poll(NULL, 0, 1000 / 30);
  }
}
