# Only entry points; the definitions are in nix/.
{
  description = "Hive: a host-side broker for fleets of Claude Code agents";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      each = f: nixpkgs.lib.genAttrs systems (system: f nixpkgs.legacyPackages.${system});
    in
    {
      packages = each (pkgs: rec {
        hive = pkgs.callPackage ./nix/package.nix { };
        default = hive;
      });

      devShells = each (pkgs: {
        default = pkgs.callPackage ./nix/devshell.nix { };
      });

      formatter = each (pkgs: pkgs.nixfmt-rfc-style);
    };
}
