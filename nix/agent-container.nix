# The NixOS container of one agent: `containers."hive-NAME"`.
#
# It sees of the host its socket, its long reminders and its own directories, and what every NixOS container gets: the store and
# the Nix daemon. Its users have the numbers of the host (an identity mapping), so files keep their owners; its root has no
# capability outside.
{
  agent,
  cfg,
  file,
  inside,
  lib,
  name,
  outside,
  own,
  service,
  stateVersion,
}:

let
  user = agent.user;
  orNone = list: if list == null then [ ] else list;
  mount = isReadOnly: path: lib.nameValuePair path { hostPath = path; inherit isReadOnly; };
in
{
  autoStart = true;
  privateUsers = "identity";

  bindMounts = lib.listToAttrs (
    map (mount false) (own ++ orNone agent.writable ++ orNone agent.devices)
    # A socket can be used in a directory that cannot be changed.
    ++ map (mount true) (
      [
        "/run/hive/agents/${name}"
        "/var/lib/hive/reminders/${name}"
      ]
      ++ orNone agent.readable
    )
    ++ [
      (lib.nameValuePair inside {
        hostPath = outside;
        isReadOnly = false;
      })
    ]
  );
  allowedDevices = map (node: {
    inherit node;
    modifier = "rw";
  }) (orNone agent.devices);

  # systemd in the container passes them on to the harness.
  extraFlags =
    lib.mapAttrsToList (id: path: "--load-credential=${id}:${path}") agent.credentials
    # The daemon would trust root of the container as that of the host: its number is the same.
    ++ lib.optional user.passwordlessSudo "--inaccessible=/nix/var/nix/daemon-socket";

  config = {
    imports = lib.optional (agent.containerConfig != null) agent.containerConfig;

    environment.etc."hive/hive.toml".source = file;
    environment.systemPackages = [ cfg.package ] ++ agent.packages;

    users.users.${user.name} = {
      isSystemUser = true;
      description = "Agent of the hive";
      group = user.name;
      uid = user.uid;
    };
    users.groups.${user.name}.gid = user.gid;

    systemd.packages = [ cfg.package ];
    # The broker is on the host.
    systemd.services.hived.enable = false;
    systemd.sockets.hived.enable = false;

    systemd.services."hive@${name}" = service // {
      path = service.path ++ lib.optional user.passwordlessSudo "/run/wrappers";
      serviceConfig =
        service.serviceConfig
        // {
          User = user.name;
          # The directories are mounts, which systemd could not move to where those of dynamic users are.
          DynamicUser = false;
        }
        // lib.optionalAttrs (agent.credentials != { }) {
          LoadCredential = builtins.attrNames agent.credentials;
        }
        // lib.optionalAttrs user.passwordlessSudo {
          # sudo is a program with the rights of root, and needs the capabilities of the container's root.
          NoNewPrivileges = false;
          CapabilityBoundingSet = [
            "CAP_CHOWN"
            "CAP_DAC_OVERRIDE"
            "CAP_DAC_READ_SEARCH"
            "CAP_FOWNER"
            "CAP_FSETID"
            "CAP_KILL"
            "CAP_SETGID"
            "CAP_SETUID"
            "CAP_SYS_RESOURCE"
          ];
          ProtectSystem = false;
        };
    };

    security.sudo.extraRules = lib.optional user.passwordlessSudo {
      users = [ user.name ];
      commands = [
        {
          command = "ALL";
          options = [ "NOPASSWD" ];
        }
      ];
    };

    system.stateVersion = lib.mkDefault stateVersion;
  };
}
