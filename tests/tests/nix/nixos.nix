# A stand-in for NixOS: the options of it that nix/ sets, and what NixOS makes of them.
#
# The texts of units are written as NixOS writes them, but for two things: the triggers of restarts and reloads are here the
# values themselves, in place of a file of the store with them, and there is no PATH of NixOS's own.
{ lib, pkgs }:

let
  inherit (lib) mkOption types;

  has = type: default: mkOption { inherit type default; };
  list = has (types.listOf types.str) [ ];
  values = has (types.attrsOf types.raw) { };
  maybe = type: has (types.nullOr type) null;

  unit = {
    enable = has types.bool true;
    overrideStrategy = has (types.enum [
      "asDropinIfExists"
      "asDropin"
    ]) "asDropinIfExists";
    wantedBy = list;
    after = list;
    wants = list;
  };

  service = {
    options = unit // {
      path = has (types.listOf (types.either types.package types.str)) [ ];
      environment = has (types.attrsOf types.str) { };
      serviceConfig = values;
      stopIfChanged = has types.bool true;
      restartTriggers = has (types.listOf types.raw) [ ];
      reloadTriggers = has (types.listOf types.raw) [ ];
    };
  };

  socket.options = unit // {
    socketConfig = values;
  };

  user.options = {
    isSystemUser = has types.bool false;
    isNormalUser = has types.bool false;
    description = has types.str "";
    group = has types.str "";
    extraGroups = list;
    uid = maybe types.int;
    home = has types.str "/var/empty";
  };

  group.options = {
    gid = maybe types.int;
    members = list;
  };

  etc.options.source = mkOption { type = types.path; };

  mount.options = {
    hostPath = maybe types.str;
    isReadOnly = has types.bool true;
  };

  container.options = {
    autoStart = has types.bool false;
    privateUsers = has types.str "no";
    bindMounts = has (types.attrsOf (types.submodule mount)) { };
    allowedDevices = has (types.listOf types.raw) [ ];
    extraFlags = list;
    config = mkOption { type = types.deferredModule; };
  };

  # In a submodule, as NixOS has it for services.
  attrsOfModules = module: has (types.attrsOf (types.submodule module)) { };

  options = {
    assertions = has (types.listOf types.raw) [ ];
    warnings = list;
    environment.etc = attrsOfModules etc;
    environment.systemPackages = has (types.listOf types.package) [ ];
    users.users = attrsOfModules user;
    users.groups = attrsOfModules group;
    systemd.packages = has (types.listOf types.package) [ ];
    systemd.services = attrsOfModules service;
    systemd.sockets = attrsOfModules socket;
    systemd.tmpfiles.packages = has (types.listOf types.package) [ ];
    systemd.tmpfiles.rules = list;
    security.polkit.enable = has types.bool false;
    services.dbus.packages = has (types.listOf types.package) [ ];
    security.sudo.extraRules = has (types.listOf types.raw) [ ];
    containers = attrsOfModules container;
    specialisation = values;
    virtualisation = values;
    system.stateVersion = has types.str "";
  };

  evaluate =
    modules:
    (lib.evalModules {
      modules = [
        {
          inherit options;
          config._module.args = { inherit pkgs; };
        }
      ]
      ++ modules;
    }).config;

  shown = value: if value == true then "true" else if value == false then "false" else toString value;
  section =
    name: attrs:
    "[${name}]\n"
    + lib.concatStrings (
      lib.concatLists (
        lib.mapAttrsToList (
          key: value: map (one: "${key}=${shown one}\n") (if builtins.isList value then value else [ value ])
        ) attrs
      )
    );
  words = key: list: lib.optionalAttrs (list != [ ]) { ${key} = toString list; };

  textOf =
    kind: specific: def:
    section "Unit" (
      words "Wants" def.wants
      // words "After" def.after
      // words "X-Restart-Triggers" (def.restartTriggers or [ ])
      // words "X-Reload-Triggers" (def.reloadTriggers or [ ])
    )
    + "\n"
    + section kind specific
    + lib.optionalString (def.wantedBy != [ ]) "\n[Install]\nWantedBy=${toString def.wantedBy}\n";

  serviceText =
    def:
    let
      environment =
        lib.optionalAttrs (def.path != [ ]) { PATH = lib.makeBinPath def.path; } // def.environment;
    in
    textOf "Service" (
      lib.optionalAttrs (environment != { }) {
        Environment = lib.mapAttrsToList (name: value: builtins.toJSON "${name}=${value}") environment;
      }
      // lib.optionalAttrs (!def.stopIfChanged) { X-StopIfChanged = false; }
      // def.serviceConfig
    ) def;

  place =
    name: def:
    if !def.enable then
      "${name} (masked)"
    else if def.overrideStrategy == "asDropin" then
      "${name}.d/overrides.conf"
    else
      name;

  # What a host is made of, as text and data.
  rendered = config: {
    etc = lib.mapAttrs (_: file: { inherit (file.source) script text; }) config.environment.etc;
    units =
      lib.mapAttrs' (
        name: def:
        lib.nameValuePair (place "${name}.service" def) (if def.enable then serviceText def else "")
      ) config.systemd.services
      // lib.mapAttrs' (
        name: def:
        lib.nameValuePair (place "${name}.socket" def) (
          if def.enable then textOf "Socket" def.socketConfig def else ""
        )
      ) config.systemd.sockets;
    users = lib.mapAttrs (_: lib.filterAttrs (_: value: value != null && value != [ ] && value != false && value != "")) config.users.users;
    groups = lib.mapAttrs (_: lib.filterAttrs (_: value: value != null && value != [ ])) config.users.groups;
    unit_packages = map toString config.systemd.packages;
    system_packages = map toString config.environment.systemPackages;
    tmpfiles = map toString config.systemd.tmpfiles.packages ++ config.systemd.tmpfiles.rules;
    polkit = config.security.polkit.enable;
    bus = map toString config.services.dbus.packages;
    sudo = config.security.sudo.extraRules;
    containers = lib.mapAttrs (
      _: container:
      removeAttrs container [ "config" ]
      // {
        inside = removeAttrs (rendered (evaluate [ container.config ])) [ "bus" "containers" "polkit" "tmpfiles" ];
      }
    ) config.containers;
  };

  outcome =
    config:
    let
      failed = builtins.filter (check: !check.assertion) config.assertions;
    in
    if failed != [ ] then
      { failed = map (check: check.message) failed; }
    else
      rendered config // { inherit (config) warnings; };
in
{
  inherit evaluate outcome;
}
