#!/bin/sh
# Run as root in each machine: what it needs, and its part of the traffic by one short name.
# Usage: provision.sh server|client OWN-ADDRESS
set -eu
role=$1 address=$2

if [ "$role" = server ]; then
  cd /edgeshed
  tools/dev deps
  tools/dev build
  cat >/usr/local/bin/edgeshed-traffic <<END
#!/bin/sh
# The card is found by its address: its name depends on the provider.
dev=\$(ip -o -4 addr show to $address | cut -d ' ' -f 2)
exec python3 /edgeshed/tests/vm/traffic.py server --dev "\$dev" --address $address \\
  --edgeshed /edgeshed/build/dev/tools/cli/edgeshed \\
  --edgeshedd /edgeshed/build/dev/userspace/daemon/edgeshedd "\$@"
END
else
  apt-get -qq update
  apt-get -qq install -y --no-install-recommends python3
  cat >/usr/local/bin/edgeshed-traffic <<'END'
#!/bin/sh
exec python3 /edgeshed/tests/vm/traffic.py client "$@"
END
fi
chmod 755 /usr/local/bin/edgeshed-traffic
