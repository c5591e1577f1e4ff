# Only entry points; the definitions are in nix/.
{
  description = "Hive: a host-side broker for fleets of Claude Code agents";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { nixpkgs, ... }:
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

      overlays.default = import ./nix/overlay.nix;

      nixosModules = rec {
        hive = ./nix/module.nix;
        default = hive;
      };

      devShells = each (pkgs: {
        default = pkgs.callPackage ./nix/devshell.nix { };
      });

      # `vm` boots a host, so it needs a machine with KVM.
      checks = each (pkgs: {
        package = pkgs.callPackage ./nix/package.nix { };
        vm = pkgs.callPackage ./nix/vm-test.nix { };
      });

      formatter = each (pkgs: pkgs.nixfmt-rfc-style);
    };
}
