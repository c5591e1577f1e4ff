# `services.hive`: the broker of a hive and the services of its agents.
#
# The units are those of packaging/systemd, which the package installs; this module only adds to them, as drop-ins.
{
  config,
  lib,
  pkgs,
  ...
}:

let
  inherit (lib) mkDefault mkIf;
  cfg = config.services.hive;

  agents = import ./agents.nix {
    inherit cfg lib pkgs;
    fileSettings = settings;
    inherit (config.system) stateVersion;
  };
  toml = import ./toml.nix { inherit lib; };

  # Options without a value are null, and tables of such options are empty.
  isSaid = value: value != null && value != { };
  said =
    value:
    if builtins.isAttrs value && !(value ? outPath) then
      lib.filterAttrs (_: isSaid) (lib.mapAttrs (_: said) value)
    else
      value;

  # An agent can be a table without a key.
  settings =
    said (removeAttrs cfg.settings [ "agents" ])
    // lib.optionalAttrs (cfg.settings ? agents) { agents = lib.mapAttrs (_: said) cfg.settings.agents; };
  text = "# Made from services.hive of the configuration of this host.\n\n" + toml settings;

  # The daemon reads the file once before the host gets it, if its program runs where this is built.
  file =
    if pkgs.stdenv.buildPlatform.canExecute pkgs.stdenv.hostPlatform then
      pkgs.runCommand "hive.toml"
        {
          inherit text;
          passAsFile = [ "text" ];
        }
        ''
          ${cfg.package}/bin/hived --check-config "$textPath"
          cp "$textPath" $out
        ''
    else
      pkgs.writeText "hive.toml" text;

  # The directory of backups, if it is named.
  backups = settings.broker.backup.dir or null;

  systemUser = group: description: {
    inherit group description;
    isSystemUser = true;
  };
in
{
  imports = [ ./options.nix ];

  config = mkIf cfg.enable {
    assertions = import ./checks.nix { inherit config lib settings; };
    warnings = agents.warnings;

    services.hive.settings = {
      hive = {
        name = mkIf (cfg.name != null) cfg.name;
        domain = mkIf (cfg.domain != null) cfg.domain;
        swarm = mkIf (cfg.swarm != null) cfg.swarm;
      };
      broker = {
        socket_group = cfg.group;
        agent_unit = mkDefault "hive@{name}.service";
      };
      operator = {
        pronouns = mkIf (cfg.operatorPronouns != null) cfg.operatorPronouns;
        journal_units = mkIf (cfg.journalUnits != [ ]) cfg.journalUnits;
        notify.command = mkIf (cfg.notify.command != null) cfg.notify.command;
        notify.webhook = mkIf (cfg.notify.webhook != null) cfg.notify.webhook;
      };
      claude.context_windows = mkIf (cfg.contextWindowTokens != { }) cfg.contextWindowTokens;
      actions = lib.mapAttrs (
        _: action:
        lib.filterAttrs (_: value: value != null) {
          inherit (action)
            command
            preview
            description
            agents
            args
            ;
          timeout_secs = action.timeoutSecs;
        }
      ) cfg.actions;
      agents = agents.settings;
    };

    environment.etc."hive/hive.toml".source = file;
    environment.systemPackages = [ cfg.package ];

    # As packaging/systemd/hive.sysusers, which NixOS does not read; a test compares them.
    users.users = {
      hive = systemUser "hive" "Broker of the hive" // {
        home = "/var/lib/hive";
      };
      hive-launcher = systemUser "hive-launcher" "Launcher of the agents of the hive";
    }
    // agents.users;
    users.groups = {
      hive = { };
      hive-launcher = { };
      hive-metrics = { };
      ${cfg.group}.members = cfg.operators;
    }
    // agents.groups;

    systemd.packages = [ cfg.package ];
    systemd.tmpfiles.packages = [ cfg.package ];
    systemd.tmpfiles.rules =
      agents.directories
      # Elsewhere it may be a disk: if that is missing, no backup must be made in its place.
      ++ lib.optional (backups != null && lib.hasPrefix "/var/lib/hive/" backups) "d ${backups} 0700 hive hive -";

    systemd.sockets.hived = {
      overrideStrategy = "asDropin";
      wantedBy = [ "sockets.target" ];
      socketConfig = mkIf (cfg.group != "hive-operators") { SocketGroup = cfg.group; };
    };

    systemd.services = {
      hived = {
        overrideStrategy = "asDropin";
        wantedBy = [ "multi-user.target" ];
        # A stop would lose the sockets of agents that systemd keeps.
        stopIfChanged = false;
        # What the broker reads only when it starts. The rest is applied by a reload.
        restartTriggers = [ (builtins.toJSON (removeAttrs settings [ "claude" "agents" ])) ];
        reloadTriggers = [ file ];
        path = cfg.packages;
        serviceConfig =
          lib.optionalAttrs (cfg.credentials != { }) { LoadCredential = agents.loaded cfg.credentials; }
          # Outside of its own directories the broker can write nowhere else. A missing disk must not keep it from starting.
          // lib.optionalAttrs (backups != null) { ReadWritePaths = [ "-${backups}" ]; };
      };

      # For all agents, those too that are created at run time.
      "hive@" = {
        overrideStrategy = "asDropin";
        path = agents.path;
      };
    }
    // lib.optionalAttrs cfg.launcher.enable {
      hive-launcher = {
        overrideStrategy = "asDropin";
        wantedBy = [ "multi-user.target" ];
        serviceConfig = lib.optionalAttrs (cfg.group != "hive-operators") {
          SupplementaryGroups = [
            ""
            cfg.group
            "systemd-journal"
          ];
        };
      };
    }
    // agents.services;

    containers = agents.containers file;

    # The package has the rule, and polkit reads those of all packages of the system. The bus is given its policy.
    security.polkit.enable = true;
    services.dbus.packages = [ cfg.package ];
  };
}
