# What the agents of `services.hive` render to: keys of hive.toml, users, units and containers.
{
  cfg,
  lib,
  pkgs,
  # Those of hive.toml as they are rendered.
  fileSettings,
  stateVersion,
}:

let
  keys = import ./keys.nix { inherit lib; };

  inUnits = lib.filterAttrs (_: agent: agent.isolation == "user") cfg.agents;
  inContainers = lib.filterAttrs (_: agent: agent.isolation == "container") cfg.agents;

  path = [
    cfg.package
    pkgs.bash
    pkgs.bubblewrap
  ]
  ++ lib.optional (cfg.claudePackage != null) cfg.claudePackage
  ++ cfg.packages;

  loaded = lib.mapAttrsToList (name: file: "${name}:${file}");

  # Where the unit has them, if no option says otherwise.
  directory = name: "/var/lib/hive-agents/${name}";
  # Only root of the host can reach these: root of a container could leave programs with the rights of root in them.
  ofContainer = name: "/var/lib/hive-containers/${name}";
  ownDirs = agent: builtins.filter (dir: dir != null) [ agent.stateDir agent.homeDir ];

  orNone = list: if list == null then [ ] else list;
  container = name: "hive-${name}";

  limits =
    agent:
    lib.optionalAttrs (agent.memoryMax != null) { MemoryMax = agent.memoryMax; }
    // lib.optionalAttrs (agent.memoryHigh != null) { MemoryHigh = agent.memoryHigh; }
    // lib.optionalAttrs (agent.cpuQuota != null) { CPUQuota = agent.cpuQuota; }
    // lib.optionalAttrs (agent.tasksMax != null) { TasksMax = agent.tasksMax; };

  server = keys.toFile "agents.NAME.extra_mcp_servers.KEY.";

  settings =
    name: agent:
    # The broker recognises the agent by its user, and in a container by the unit of that, too.
    {
      users = [ agent.user.name ];
    }
    // lib.optionalAttrs (agent.isolation == "container") {
      unit = "container@${container name}.service";
    }
    // keys.toFile "agents.NAME." agent
    // lib.optionalAttrs (agent.extraMcpServers != { }) {
      extra_mcp_servers = lib.mapAttrs (_: server) agent.extraMcpServers;
    };

  # The drop-in of `hive@NAME`, on the host or in a container.
  service =
    name: agent:
    let
      writable = ownDirs agent ++ orNone agent.writable;
      devices = orNone agent.devices;
    in
    {
      overrideStrategy = "asDropin";
      wantedBy = [ "multi-user.target" ];
      path = path ++ agent.packages;
      environment =
        lib.optionalAttrs (agent.stateDir != null) { HIVE_STATE_DIR = agent.stateDir; }
        // lib.optionalAttrs (agent.homeDir != null) {
          HIVE_HOME_DIR = agent.homeDir;
          HOME = agent.homeDir;
        };
      serviceConfig =
        lib.optionalAttrs (agent.user.name != "hive-${name}") { User = agent.user.name; }
        // lib.optionalAttrs (writable != [ ]) { BindPaths = writable; }
        // lib.optionalAttrs (orNone agent.readable != [ ]) { BindReadOnlyPaths = agent.readable; }
        // lib.optionalAttrs (devices != [ ]) {
          # Private devices would hide them; the policy allows no others.
          PrivateDevices = false;
          DevicePolicy = "closed";
          DeviceAllow = map (device: "${device} rw") devices;
        };
    };

  onHost =
    name: agent:
    let
      unit = service name agent;
    in
    unit
    // {
      # A host that is booted, or switched to another configuration, must not start an agent that is stopped.
      wantedBy = lib.optionals (!cfg.launcher.enable) unit.wantedBy;
      serviceConfig =
        unit.serviceConfig
        // limits agent
        // lib.optionalAttrs (agent.credentials != { }) { LoadCredential = loaded agent.credentials; };
    };

  user = agent: {
    isSystemUser = true;
    description = "Agent of the hive";
    group = agent.user.name;
    uid = agent.user.uid;
  };

  # By the names of users, where two agents may have one: a check refuses that.
  byUser = f: lib.mapAttrs' (_: agent: lib.nameValuePair agent.user.name (f agent)) cfg.agents;

  # Variables that are keys by their names, and have a value in the file. Servers may pass on one of claude: `${NAME}`.
  keysIn =
    env:
    builtins.filter (
      variable:
      builtins.match ".*(KEY|TOKEN|SECRET|PASSWORD).*" variable != null
      && builtins.isString env.${variable}
      && !(lib.hasPrefix "\${" env.${variable})
    ) (if env == null then [ ] else builtins.attrNames env);

  inTheStore =
    where: variable:
    "${where}: the value of ${variable} is in the Nix store, which every user can read; write it as { credential = NAME; } or { file = PATH; }.";

  owned = agent: mode: dir: "d ${dir} ${mode} ${agent.user.name} ${agent.user.name} -";
in
{
  inherit loaded path;

  settings = lib.mapAttrs settings cfg.agents;

  users = byUser user;
  groups = byUser (agent: { gid = agent.user.gid; });

  # What systemd makes for a service on the host, a container needs before it starts; and directories of an author's own choice.
  directories =
    lib.concatLists (
      lib.mapAttrsToList (_: agent: map (owned agent "0700") (ownDirs agent)) inUnits
    )
    ++ lib.optionals (inContainers != { }) [
      "d /var/lib/hive-containers 0700 root root -"
      # The root file systems of containers, for the same reason.
      "d /var/lib/nixos-containers 0700 root root -"
    ]
    # NixOS mounts a directory below each of these into every container, for its root to write.
    ++ lib.optionals (builtins.any (agent: agent.user.passwordlessSudo) (builtins.attrValues inContainers)) [
      "d /nix/var/nix/profiles/per-container 0700 root root -"
      "d /nix/var/nix/gcroots/per-container 0700 root root -"
    ]
    ++ lib.concatLists (
      lib.mapAttrsToList (
        name: agent:
        [
          "d /run/hive/agents/${name} 0755 hive hive -"
          "d /var/lib/hive 0711 hive hive -"
          "d /var/lib/hive/reminders 0755 hive hive -"
          "d /var/lib/hive/reminders/${name} 0755 hive hive -"
        ]
        ++ map (owned agent "0700") ([ (ofContainer name) ] ++ ownDirs agent)
      ) inContainers
    );

  services =
    lib.mapAttrs' (name: agent: lib.nameValuePair "hive@${name}" (onHost name agent)) inUnits
    # The launcher leaves a unit alone that is masked.
    // lib.optionalAttrs cfg.launcher.enable (
      lib.mapAttrs' (name: _: lib.nameValuePair "hive@${name}" { enable = false; }) inContainers
    )
    // lib.mapAttrs' (
      name: agent:
      lib.nameValuePair "container@${container name}" {
        after = [ "hived.service" ];
        wants = [ "hived.service" ];
        serviceConfig = limits agent;
      }
    ) inContainers;

  containers =
    file:
    lib.mapAttrs' (
      name: agent:
      lib.nameValuePair (container name) (
        import ./agent-container.nix {
          inherit
            agent
            cfg
            file
            lib
            name
            stateVersion
            ;
          service = service name agent;
          inside = directory name;
          outside = ofContainer name;
          own = ownDirs agent;
        }
      )
    ) inContainers;

  warnings =
    map (inTheStore "services.hive.settings.claude.env") (keysIn (fileSettings.claude.env or null))
    ++ lib.optional (builtins.isString (fileSettings.operator.notify.webhook or null))
      "services.hive.notify.webhook is in the Nix store, which every user can read; if it has a key in it, write it as { credential = NAME; } or { file = PATH; }."
    ++ lib.concatLists (
    lib.mapAttrsToList (
      name: agent:
      map (inTheStore "services.hive.agents.${name}") (lib.concatMap keysIn (lib.mapAttrsToList (_: server: server.env) agent.extraMcpServers ++ [ agent.env ]))
      ++
      lib.optional (agent.allowedRecipients == [ ])
        "services.hive.agents.${name}.allowedRecipients is an empty list, which allows everyone; leave it out, or name recipients."
    ) cfg.agents
  );
}
