# Only entry points; the definitions are in nix/.
{
  description = "Hive: a host-side broker for fleets of Claude Code agents";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      # As `--version` prints it; without uncommitted changes only.
      day = builtins.match "(....)(..)(..).*" (self.lastModifiedDate or "");
      commit =
        if self ? rev then
          "${builtins.substring 0 12 self.rev} ${nixpkgs.lib.concatStringsSep "-" day}"
        else
          "";

      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      each = f: nixpkgs.lib.genAttrs systems (system: f nixpkgs.legacyPackages.${system});
    in
    {
      packages = each (pkgs: rec {
        hive = pkgs.callPackage ./nix/package.nix { inherit commit; };
        default = hive;
      });

      overlays.default = import ./nix/overlay.nix;

      nixosModules = rec {
        hive =
          { lib, pkgs, ... }:
          {
            imports = [ ./nix/module.nix ];
            services.hive.package = lib.mkDefault (pkgs.callPackage ./nix/package.nix { inherit commit; });
          };
        default = hive;
      };

      devShells = each (pkgs: {
        default = pkgs.callPackage ./nix/devshell.nix { };
      });

      # `vm` boots a host, so it needs a machine with KVM.
      checks = each (pkgs: {
        package = pkgs.callPackage ./nix/package.nix { inherit commit; };
        vm = pkgs.callPackage ./nix/vm-test.nix { };
      });

      formatter = each (pkgs: pkgs.nixfmt-rfc-style);
    };
}
