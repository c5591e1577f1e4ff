# The options of one agent: `services.hive.agents.<name>`. Its keys of hive.toml come from the table of keys.
{
  config,
  lib,
  name,
  ...
}:

let
  inherit (lib) mkOption types;
  keys = import ./keys.nix { inherit lib; };

  limit =
    description: example:
    mkOption {
      type = types.nullOr types.str;
      default = null;
      inherit description example;
    };
in
{
  options = lib.recursiveUpdate (keys.asInNix "agents.NAME.") {
    isolation = mkOption {
      type = types.enum [
        "user"
        "container"
      ];
      default = "user";
      description = ''
        `user`: the service `hive@NAME` with a user of its own. `container`: that service in a NixOS container with a user
        namespace, which sees of the host only its own directories and what every NixOS container gets.
      '';
    };

    user = {
      name = mkOption {
        type = types.str;
        default = "hive-${name}";
        defaultText = "hive-NAME";
        description = "The user of the agent. It is made, and must be the user of no other agent or service.";
      };
      uid = mkOption {
        type = types.nullOr types.ints.unsigned;
        default = null;
        description = "Number of the user. Needed with isolation `container`, where it is the same inside and outside.";
      };
      gid = mkOption {
        type = types.nullOr types.ints.unsigned;
        default = config.user.uid;
        defaultText = "the number of the user";
        description = "Number of the group of the user, which has its name.";
      };
      passwordlessSudo = mkOption {
        type = types.bool;
        default = false;
        description = "Whether the agent may become root by sudo, without a password. Only with isolation `container`.";
      };
    };

    credentials = mkOption {
      type = types.attrsOf types.str;
      default = { };
      example = {
        anthropic = "/run/keys/anthropic";
      };
      description = ''
        Files that systemd shows to the harness of this agent, by the names under which values of `env` refer to them:
        `env.ANTHROPIC_API_KEY.credential = "anthropic"`. Never a file of the Nix store, which every user can read.
      '';
    };

    packages = mkOption {
      type = types.listOf types.package;
      default = [ ];
      description = "Programs on the PATH of this agent, besides `services.hive.packages`.";
    };

    memoryMax = limit "Memory of all programs of the agent; over it they are ended (MemoryMax)." "4G";
    memoryHigh = limit "Memory over which the agent is slowed down (MemoryHigh)." "3G";
    cpuQuota = limit "Processor time; `200%` are two processors (CPUQuota)." "200%";
    tasksMax = mkOption {
      type = types.nullOr types.ints.positive;
      default = null;
      description = "Maximum processes and threads of the agent (TasksMax).";
    };

    containerConfig = mkOption {
      type = types.nullOr types.deferredModule;
      default = null;
      description = "A module of NixOS for the container, with isolation `container`.";
    };

    extraMcpServers = mkOption {
      type = types.attrsOf (
        types.submodule { options = keys.asInNix "agents.NAME.extra_mcp_servers.KEY."; }
      );
      default = { };
      description = "The agent's own MCP servers.";
    };
  };
}
