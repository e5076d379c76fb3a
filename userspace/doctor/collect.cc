#include "userspace/doctor/collect.h"

namespace edgeshed::doctor {

Facts collect(const CollectOptions& options) {
  Facts facts;
  facts.host = collect_host(options);
  facts.pins = collect_pins(options.pin_dir);
  facts.config = options.config;
  facts.config_has_devices = options.config_has_devices;
  facts.devices = collect_devices(options);
  return facts;
}

}  // namespace edgeshed::doctor
