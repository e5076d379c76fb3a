/* Loaded before libbpf (LD_PRELOAD): an interface whose kernel lets no TC filter be put on.
 * EDGESHED_REFUSE_TC names it; with EDGESHED_REFUSE_TC_WHILE only while a file of that name is
 * there, which grows by a byte each time. For upgrade_test.py and interfaces_test.py. */
#define _GNU_SOURCE
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdlib.h>
#include <unistd.h>

typedef int (*attach_function)(const struct bpf_tc_hook* hook, struct bpf_tc_opts* options);

static int is_refused(int ifindex) {
  const char* refused = getenv("EDGESHED_REFUSE_TC");
  if (refused == NULL || ifindex != (int)if_nametoindex(refused)) return 0;
  const char* path = getenv("EDGESHED_REFUSE_TC_WHILE");
  if (path == NULL) return 1;
  const int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return 0;
  const int counted = write(file, "x", 1) == 1;
  close(file);
  return counted;
}

int bpf_tc_attach(const struct bpf_tc_hook* hook, struct bpf_tc_opts* options) {
  if (is_refused(hook->ifindex)) return -EBUSY;
  attach_function real = (attach_function)dlsym(RTLD_NEXT, "bpf_tc_attach");
  return real != NULL ? real(hook, options) : -ENOSYS;
}
