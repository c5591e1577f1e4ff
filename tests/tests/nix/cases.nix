# What the test evaluates, all at once: the configurations of configurations.nix, and the outputs of the flake.
{
  lib ? import ./lib.nix,
}:

let
  package = name: {
    type = "derivation";
    inherit name;
    outPath = "/nix/store/${name}";
  };

  # Of nixpkgs, what nix/ uses. Nothing is built: a derivation is a name with what it would be made of.
  pkgsOf =
    canExecute:
    let
      callPackage =
        file: arguments:
        let
          function = import file;
        in
        function (builtins.intersectAttrs (builtins.functionArgs function) pkgs // arguments);
      names = [
        "bash"
        "bubblewrap"
        "buf"
        "cargo"
        "clippy"
        "deadnix"
        "gnumake"
        "jq"
        "nixfmt-rfc-style"
        "nodejs"
        "rust-analyzer"
        "rustc"
        "rustfmt"
        "shellcheck"
        "strace"
        "valgrind"
      ];
      pkgs = lib.genAttrs names package // {
        inherit callPackage lib;
        buildPackages = { };
        stdenv = {
          buildPlatform.canExecute = _: canExecute;
          hostPlatform.emulator = _: "emulator";
        };
        runCommand =
          name: env: script:
          package name
          // {
            inherit (env) text;
            inherit script;
          };
        writeText =
          name: text:
          package name
          // {
            inherit text;
            script = "(not checked)";
          };
        rustPlatform.buildRustPackage =
          attrs:
          package attrs.pname
          // attrs
          // {
            overrideAttrs =
              change:
              pkgs.rustPlatform.buildRustPackage (
                attrs // (if builtins.isFunction change then change attrs else change)
              );
          };
        mkShell = attrs: attrs;
        testers.runNixOSTest = test: test;
      };
    in
    pkgs;

  evaluated =
    pkgs: modules:
    let
      host = import ./nixos.nix { inherit lib pkgs; };
    in
    host.outcome (host.evaluate modules);

  outcomeOf =
    configuration:
    evaluated (pkgsOf (!(configuration.isCross or false))) [
      ../../../nix/module.nix
      (
        { lib, ... }:
        {
          services.hive.package = lib.mkDefault (package "hive");
          system.stateVersion = "26.05";
        }
      )
      configuration.module
    ];

  # The module system refuses some by an error, whose text another evaluation of that one shows.
  tried =
    configuration:
    let
      outcome = outcomeOf configuration;
      attempt = builtins.tryEval (builtins.deepSeq outcome outcome);
    in
    if attempt.success then attempt.value else { refused = true; };

  configurations = import ./configurations.nix { inherit package; };

  flake = import ../../../flake.nix;
  nixpkgs = {
    inherit lib;
    legacyPackages = lib.genAttrs [ "x86_64-linux" "aarch64-linux" ] (_: pkgsOf true);
  };
  self = {
    rev = "1f2e3d4c5b6a79880716253443526170f1e2d3c4";
    lastModifiedDate = "20261127204512";
  };
  outputs = flake.outputs { inherit nixpkgs self; };

  built = package: {
    inherit (package)
      pname
      version
      cargoBuildFlags
      postInstall
      ;
    commit = package.env.HIVE_COMMIT;
    license = map (license: license.spdxId) package.meta.license;
  };
  host = outputs.checks.x86_64-linux.vm.nodes.host;
in
{
  all = lib.mapAttrs (_: tried) configurations;
  one = lib.mapAttrs (_: outcomeOf) configurations;

  flake = {
    inherit (flake) description;
    outputs = builtins.attrNames outputs;
    packages = lib.mapAttrs (_: lib.mapAttrs (_: built)) outputs.packages;
    cross = built (((pkgsOf false).callPackage) ../../../nix/package.nix { });
    overlay = built (outputs.overlays.default (pkgsOf true) { }).hive;
    changed = built (flake.outputs {
      inherit nixpkgs;
      self = removeAttrs self [ "rev" ];
    }).packages.x86_64-linux.hive;
    modules = lib.mapAttrs (
      _: module:
      let
        host = (import ./nixos.nix { inherit lib; pkgs = pkgsOf true; }).evaluate [
          module
          { services.hive.enable = true; }
        ];
      in
      (built host.services.hive.package).commit
    ) outputs.nixosModules;
    shells = lib.mapAttrs (
      _: shells: map (tool: tool.name) shells.default.packages
    ) outputs.devShells;
    checks = lib.mapAttrs (_: builtins.attrNames) outputs.checks;
    formatter = lib.mapAttrs (_: formatter: formatter.name) outputs.formatter;
    # The host of the test in a virtual machine, by the module of the flake.
    vm = removeAttrs (evaluated (pkgsOf true) [ host ]) [ "etc" ] // {
      inherit (outputs.checks.x86_64-linux.vm) testScript;
    };
  };
}
