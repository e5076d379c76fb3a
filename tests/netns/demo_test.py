"""The demo, short. Usage: demo BUILD_DIR. Its claims are about time, and a machine that runs tests
may do something else for a second: what does not hold is tried once more, and only then fails."""

import subprocess
import sys

TRIES = 2
TIMEOUT_S = 110


# Rule: A8, B2, B3, B5
def main():
    demo, build_dir = sys.argv[1:3]
    for left in reversed(range(TRIES)):
        code = subprocess.run([sys.executable, "-B", demo, "--short", "--build-dir", build_dir],
                              timeout=TIMEOUT_S, check=False).returncode
        if code == 0 or left == 0:
            return code
        print(f"exit {code}; once more", flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
