# What makes the evaluation fail: configurations that are valid by their types, and unsafe or without effect.
{
  config,
  lib,
  settings,
}:

let
  cfg = config.services.hive;
  agents = lib.mapAttrsToList (name: agent: { inherit name agent; }) cfg.agents;
  option = name: "services.hive.agents.${name}";

  groupOf = user: (config.users.users.${user} or { }).group or "";
  isOperator =
    user:
    builtins.elem user cfg.operators
    || builtins.elem user (config.users.groups.${cfg.group}.members or [ ])
    || builtins.elem cfg.group ((config.users.users.${user} or { }).extraGroups or [ ])
    || groupOf user == cfg.group;

  others = name: builtins.filter (other: other.name != name) agents;
  names = found: lib.concatMapStringsSep ", " (other: other.name) found;

  # A user of the host that is none of the agents', with that number.
  ownerOf =
    uid:
    lib.filterAttrs (
      user: values:
      (values.uid or null) == uid && !(builtins.any (other: other.agent.user.name == user) agents)
    ) config.users.users;

  # The names of credentials in an `env`.
  credentialsOf =
    env:
    builtins.filter (name: name != null) (
      map (value: if builtins.isAttrs value then value.credential or null else null) (
        if env == null then [ ] else builtins.attrValues env
      )
    );
  missing = wanted: had: builtins.filter (name: !(had ? ${name})) wanted;

  inStore = lib.filterAttrs (_: file: lib.hasPrefix builtins.storeDir file);
  isRelative = lib.filterAttrs (_: file: !(lib.hasPrefix "/" file));
  ofFiles =
    where: files:
    lib.mapAttrsToList (name: file: {
      assertion = false;
      message = "${where}.credentials.${name} is ${file}, which every user can read; keep it outside of the Nix store.";
    }) (inStore files)
    ++ lib.mapAttrsToList (name: file: {
      assertion = false;
      message = "${where}.credentials.${name} is ${file}; write a path that begins with `/`.";
    }) (isRelative files);

  isKeptInStore =
    value: builtins.isAttrs value && lib.hasPrefix builtins.storeDir (toString (value.file or ""));

  fixed = {
    state_dir = "/var/lib/hive";
    runtime_dir = "/run/hive";
  };

  ofAgent =
    { name, agent }:
    let
      user = agent.user;
      sameUser = builtins.filter (other: other.agent.user.name == user.name) (others name);
      sameUid = builtins.filter (other: user.uid != null && other.agent.user.uid == user.uid) (
        others name
      );
      owners = builtins.attrNames (ownerOf user.uid);
      environments =
        [ (settings.claude.env or { }) agent.env ]
        ++ lib.mapAttrsToList (_: server: server.env) agent.extraMcpServers;
      unknown = missing (lib.concatMap credentialsOf environments) agent.credentials;
      shared = if agent.writable == null then [ ] else agent.writable;
      hidden = builtins.filter (
        dir:
        dir != null
        && builtins.any (top: dir == top || lib.hasPrefix "${top}/" dir) [
          "/home"
          "/root"
          "/run/user"
        ]
      ) [ agent.stateDir agent.homeDir ];
      paths =
        builtins.filter (path: path != null) [ agent.stateDir agent.homeDir ]
        ++ lib.concatMap (list: if list == null then [ ] else list) [
          agent.readable
          agent.writable
          agent.devices
        ];
      relative = builtins.filter (path: !(lib.hasPrefix "/" path)) paths;
      # tmpfiles gives them to the agent as they are.
      taken = builtins.filter (
        dir:
        dir != null
        && (
          builtins.match "/[^/]*/?" dir != null
          || builtins.elem dir [
            "/var/lib"
            "/var/log"
            "/var/cache"
            "/run/hive"
            "/var/lib/hive"
          ]
          || lib.hasPrefix "/run/hive/" dir
          || lib.hasPrefix "/var/lib/hive/" dir
          || lib.hasPrefix "/etc/" dir
          || lib.hasPrefix "/nix/" dir
        )
      ) [ agent.stateDir agent.homeDir ];
      ownOf = agent: builtins.filter (dir: dir != null) [ agent.stateDir agent.homeDir ];
      sameDir = builtins.filter (
        other: builtins.any (dir: builtins.elem dir (ownOf agent)) (ownOf other.agent)
      ) (others name);
      keptFiles = lib.concatMap (
        env: if env == null then [ ] else builtins.filter isKeptInStore (builtins.attrValues env)
      ) environments;
    in
    [
      {
        assertion = builtins.match "[a-z][a-z0-9_-]{0,62}" name != null;
        message = "${option name}: an agent's name has up to 63 lower-case letters, digits, `-` and `_`, and begins with a letter.";
      }
      {
        assertion = !(user.passwordlessSudo && agent.isolation == "user");
        message = "${option name}.user.passwordlessSudo needs isolation = \"container\": root of this host is every agent.";
      }
      {
        assertion =
          !user.passwordlessSudo || (agent.stateDir == null && agent.homeDir == null && shared == [ ]);
        message = "${option name}.user.passwordlessSudo does not go with stateDir, homeDir or writable: root of the container could leave programs there that run as root of this host.";
      }
      {
        assertion = user.name != "root" && user.uid != 0 && user.gid != 0;
        message = "${option name}.user is root, and so every agent; leave the option out, or name a user of its own.";
      }
      {
        assertion = !(isOperator user.name);
        message = "${option name}.user.name is ${user.name}, a member of ${cfg.group}: the agent would be the operator.";
      }
      {
        assertion = !(builtins.elem user.name [ "hive" "hive-launcher" ]);
        message = "${option name}.user.name is ${user.name}, a user of the hive itself.";
      }
      {
        assertion = !((config.users.users.${user.name} or { }).isNormalUser or false);
        message = "${option name}.user.name is ${user.name}, the user of a person; an agent needs a user of its own.";
      }
      {
        assertion = sameUser == [ ];
        message = "${option name}.user.name is ${user.name}, as that of ${names sameUser}: each agent needs a user of its own.";
      }
      {
        assertion = sameUid == [ ];
        message = "${option name}.user.uid is ${toString user.uid}, as that of ${names sameUid}: each agent needs a user of its own.";
      }
      {
        assertion = user.uid == null || owners == [ ];
        message = "${option name}.user.uid is ${toString user.uid}, the number of the user ${lib.concatStringsSep ", " owners}.";
      }
      {
        assertion = builtins.stringLength user.name <= 31;
        message = "${option name}.user.name is ${user.name}, longer than the 31 characters of a user's name; set another one.";
      }
      {
        assertion = agent.isolation == "user" || user.uid != null;
        message = "${option name}.user.uid is missing: in a container the user needs the number that it has on the host.";
      }
      {
        assertion =
          agent.isolation == "user" || user.uid == null || (user.uid < 65536 && user.gid < 65536);
        message = "${option name}.user has the numbers ${toString user.uid} and ${toString user.gid}: a container has only those below 65536.";
      }
      {
        assertion = agent.isolation == "user" || !(lib.hasInfix "_" name);
        message = "${option name}: the name of a NixOS container cannot have `_`; use isolation = \"user\", or another name.";
      }
      {
        assertion = unknown == [ ];
        message = "${option name}: its environment uses the credential ${lib.concatStringsSep ", " unknown}, which is not in ${option name}.credentials.";
      }
      {
        assertion = relative == [ ];
        message = "${option name}: ${lib.concatStringsSep ", " relative} is no path that begins with `/`.";
      }
      {
        assertion = taken == [ ];
        message = "${option name}: ${lib.concatStringsSep ", " taken} would belong to the agent alone; name a directory below it.";
      }
      {
        assertion = sameDir == [ ];
        message = "${option name} has a directory of ${names sameDir}; each agent needs directories of its own.";
      }
      {
        assertion = keptFiles == [ ];
        message = "${option name}: ${
          lib.concatMapStringsSep ", " (value: toString value.file) keptFiles
        } can be read by every user; keep it outside of the Nix store.";
      }
      {
        assertion = agent.isolation == "container" || agent.containerConfig == null;
        message = "${option name}.containerConfig needs isolation = \"container\".";
      }
      {
        assertion = hidden == [ ];
        message = "${option name}: the unit hides ${lib.concatStringsSep ", " hidden}; choose a directory outside of homes.";
      }
    ]
    ++ ofFiles (option name) agent.credentials;

  webhook = missing (credentialsOf { url = settings.operator.notify.webhook or null; }) cfg.credentials;
  metrics = settings.broker.metrics or { };
  ofTraces = missing (credentialsOf (settings.broker.traces.headers or { })) cfg.credentials;
in
[
  {
    assertion = webhook == [ ];
    message = "services.hive.notify.webhook uses the credential ${lib.concatStringsSep ", " webhook}, which is not in services.hive.credentials.";
  }
  {
    assertion = ofTraces == [ ];
    message = "services.hive.settings.broker.traces.headers uses the credential ${lib.concatStringsSep ", " ofTraces}, which is not in services.hive.credentials.";
  }
  {
    assertion =
      !(lib.hasPrefix "/run/hive/metrics/" (metrics.socket or ""))
      || (metrics.group or "hive-metrics") == "hive-metrics";
    message = "services.hive.settings.broker.metrics.group is ${toString (metrics.group or "")}; the directory /run/hive/metrics is that of hive-metrics.";
  }
  {
    assertion = !(cfg.notify.command != null && cfg.notify.webhook != null);
    message = "services.hive.notify has a command and a webhook; leave one of them out.";
  }
  {
    assertion =
      !(builtins.elem cfg.group [
        "root"
        "users"
        "hive-metrics"
      ]);
    message = "services.hive.group is ${cfg.group}: its members would be operators.";
  }
]
++ lib.mapAttrsToList (key: value: {
  assertion = builtins.elem (settings.broker.${key} or value) [ value ];
  message = "services.hive.settings.broker.${key} is ${settings.broker.${key} or value}; the units have ${value}.";
}) fixed
++ ofFiles "services.hive" cfg.credentials
++ lib.concatMap ofAgent agents
