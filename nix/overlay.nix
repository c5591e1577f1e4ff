# Adds the package `hive` to nixpkgs.
final: _: { hive = final.callPackage ./package.nix { }; }
