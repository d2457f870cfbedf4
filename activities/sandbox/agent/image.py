"""Looks at an image's folders before a sandbox is made of it. Runs as nobody, in a container of that image without a network.

Input: the variable LONGHAUL_FOLDERS, a JSON array of paths. Output: {"link": what /workspace is a link to, or false, "files":
those of the paths that are there and no folders}.
"""

import json
import os

WORKSPACE = "/workspace"


def main():
    folders = [WORKSPACE, *json.loads(os.environ["LONGHAUL_FOLDERS"])]
    link = os.path.islink(WORKSPACE) and os.readlink(WORKSPACE)
    files = [path for path in folders if os.path.lexists(path) and not os.path.isdir(path)]
    print(json.dumps({"link": link, "files": files}))


if __name__ == "__main__":
    main()
