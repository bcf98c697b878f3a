#!/usr/bin/env python3
"""scripts/sbom: a valid SPDX document with every library that a built file needs.

    sbom_test.py ROOT READELF FILE...
"""

import json
import re
import subprocess
import sys

# Of the system's C and C++.
SYSTEM = re.compile(r"^(libc|libm|libstdc\+\+|libgcc_s|libpthread|libdl|librt|ld-linux.*|"
                    r"libasan|libubsan|libtsan|libkinglet|libcudart)\.so")
OWNERS = {"libzip": "libzip", "libyaml-cpp": "yaml-cpp", "libz": "zlib",
          "libzstd": "Zstandard"}


def main() -> int:
    root, readelf, *files = sys.argv[1:]
    printed = subprocess.run([sys.executable, "-B", f"{root}/scripts/sbom"], capture_output=True,
                             text=True, check=True).stdout
    document = json.loads(printed)
    names = {package["name"] for package in document["packages"]}
    faults = []
    if document["spdxVersion"] != "SPDX-2.3" or document["dataLicense"] != "CC0-1.0":
        faults.append("expected SPDX 2.3 under CC0-1.0")
    for package in document["packages"]:
        if not re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", package["SPDXID"]):
            faults.append(f"expected an SPDX identifier, found {package['SPDXID']}")
        if not re.fullmatch(r"[A-Za-z0-9.-]+", package["licenseDeclared"]):
            faults.append(f"expected a licence of SPDX's list, found {package['licenseDeclared']}")
    described = {relation["relatedSpdxElement"] for relation in document["relationships"]}
    if len(described) != len(document["packages"]) - 1:
        faults.append("expected a relationship for each package")
    for path in files:
        listing = subprocess.run([readelf, "-d", path], capture_output=True, check=True,
                                 text=True).stdout
        for library in re.findall(r"\(NEEDED\).*\[(.+)\]", listing):
            owner = OWNERS.get(re.sub(r"\.so.*", "", library))
            if not SYSTEM.match(library) and owner not in names:
                faults.append(f"{path}: needs {library}, which docs/THIRD_PARTY.md lacks")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
