# The tools to build, test and run Hive from a checkout: `nix develop`, then `make help`.
{
  mkShell,
  buf,
  bubblewrap,
  cargo,
  clippy,
  deadnix,
  gnumake,
  nodejs,
  rust-analyzer,
  rustc,
  rustfmt,
  shellcheck,
  strace,
  valgrind,
}:

mkShell {
  packages = [
    buf
    bubblewrap
    cargo
    clippy
    deadnix
    gnumake
    nodejs
    rust-analyzer
    rustc
    rustfmt
    shellcheck
    strace
    valgrind
  ];
}
