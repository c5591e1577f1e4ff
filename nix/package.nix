# The programs of Hive with their manuals, completions, licences and units, built from the committed lock file. Only the
# sources in the lock file need a network.
{
  lib,
  buildPackages,
  rustPlatform,
  stdenv,
  # The commit and its date, if they are known.
  commit ? "",
}:

let
  manifest = lib.importTOML ../Cargo.toml;

  # Only files that the build reads, so that a changed page or test script does not rebuild the programs.
  source = lib.fileset.toSource {
    root = ../.;
    fileset = lib.fileset.unions [
      ../Cargo.toml
      ../Cargo.lock
      ../core
      ../clients/rust
      ../examples/queue
      ../proto
      ../broker
      ../harness
      ../mcp-bridge
      ../hivectl
      ../prompts
      ../tests
      ../packaging
      ../docs/man
      ../CHANGELOG.md
      ../LICENSE-APACHE
      ../LICENSE-MIT
    ];
  };
in
rustPlatform.buildRustPackage {
  pname = "hive";
  inherit (manifest.workspace.package) version;

  src = source;
  cargoLock.lockFile = ../Cargo.lock;

  # Symbols go into the output `debug`; see docs/packaging.md.
  buildType = "dist";
  checkType = "release";
  separateDebugInfo = true;
  stripAllList = [ "bin" ];

  # As in any other build of the checkout.
  env.LIBSQLITE3_FLAGS = (lib.importTOML ../.cargo/config.toml).env.LIBSQLITE3_FLAGS;
  env.CFLAGS = (lib.importTOML ../.cargo/config.toml).env.CFLAGS;

  env.HIVE_COMMIT = commit;

  cargoBuildFlags = [
    "--package=hive-broker"
    "--package=hive-harness"
    "--package=hive-mcp-bridge"
    "--package=hivectl"
  ];

  # The journeys need real programs, namespaces and a real claude, which the build sandbox does not have; they run in `make test`.
  # Tests that need only the code run here too.
  cargoTestFlags = [
    "--package=hive-core"
    "--package=hive-log"
    "--package=hive-export"
    "--package=hive-client"
    "--package=hive-proto"
  ];

  # The same script as for other systems; /etc is the module's.
  postInstall = ''
    mv $out/bin shipped
    PREFIX=$out SYSCONFDIR=$out/etc POLKIT_RULES_DIR=$out/share/polkit-1/rules.d DBUS_POLICY_DIR=$out/share/dbus-1/system.d ${
      lib.optionalString (!stdenv.buildPlatform.canExecute stdenv.hostPlatform)
        ''HIVECTL="${stdenv.hostPlatform.emulator buildPackages} shipped/hivectl"''
    } bash packaging/install.sh shipped
    rm -r $out/etc
  '';

  meta = {
    description = manifest.workspace.package.description or "A host-side broker for fleets of Claude Code agents";
    license = with lib.licenses; [
      mit
      asl20
    ];
    platforms = lib.platforms.linux;
    mainProgram = "hivectl";
  };
}
