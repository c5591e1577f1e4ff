# The options of `services.hive`, but for those of an agent.
{
  config,
  lib,
  pkgs,
  ...
}:

let
  inherit (lib) mkOption types;
  keys = import ./keys.nix { inherit lib; };
  cfg = config.services.hive;

  # What a TOML file can have.
  value =
    types.nullOr (
      types.oneOf [
        types.bool
        types.int
        types.float
        types.str
        types.path
        (types.attrsOf value)
        (types.listOf value)
      ]
    )
    // {
      description = "value of TOML";
    };

  section =
    name:
    mkOption {
      type = types.submodule {
        freeformType = types.attrsOf value;
        options = keys.asInFile "${name}.";
      };
      default = { };
      description = "The section `[${name}]`.";
    };

  line =
    description:
    mkOption {
      type = types.nullOr types.str;
      default = null;
      inherit description;
    };
in
{
  options.services.hive = {
    enable = lib.mkEnableOption "the broker of a hive and the harnesses of its agents";

    package = mkOption {
      type = types.package;
      default = pkgs.callPackage ./package.nix { };
      defaultText = "the package of this repository";
      description = "The programs of Hive, with their units.";
    };

    packages = mkOption {
      type = types.listOf types.package;
      default = [ ];
      description = "Programs on the PATH of all agents: claude, git, compilers.";
    };

    claudePackage = mkOption {
      type = types.nullOr types.package;
      default = null;
      example = lib.literalExpression "pkgs.claude-code";
      description = "Claude Code, for the PATH of all agents. Without it `settings.claude.command` or `packages` name it.";
    };

    group = mkOption {
      type = types.str;
      default = "hive-operators";
      description = "The group whose members are operators. It is made.";
    };

    operators = mkOption {
      type = types.listOf types.str;
      default = [ ];
      description = "Users who are operators: each can do everything to the hive.";
    };

    launcher.enable = lib.mkEnableOption "the launcher, which starts and stops the services of agents as the broker says: those too that are created at run time";

    name = line "Short name of the hive.";
    domain = line "Domain at the end of the qualified names of agents.";
    swarm = line "Name of the swarm that the hive belongs to.";
    operatorPronouns = line "How prompts speak of the operator.";

    journalUnits = mkOption {
      type = types.listOf types.str;
      default = [ ];
      example = [ "nginx.service" ];
      description = "Units whose journal agents with the capability `read_host_journal` may read, by their full names.";
    };

    actions = mkOption {
      type = types.attrsOf (
        types.submodule {
          options = {
            command = mkOption {
              type = types.listOf types.str;
              example = [
                "systemctl"
                "start"
                "rebuild@{commit}.service"
              ];
              description = "Program and arguments; `{ARGUMENT}` stands for an argument of the agent.";
            };
            preview = mkOption {
              type = types.nullOr (types.listOf types.str);
              default = null;
              example = [
                "git"
                "diff"
                "--stat"
                "HEAD"
                "{commit}"
              ];
              description = "Program and arguments that show what `command` would do. The output is part of the question to the operator.";
            };
            description = line "What the action is for, for agents.";
            agents = mkOption {
              type = types.listOf types.str;
              default = [ ];
              description = "Agents that may ask for it.";
            };
            args = mkOption {
              type = types.attrsOf types.str;
              default = { };
              example.commit = "[0-9a-f]{40}";
              description = "Arguments by name, each with the regular expression that it must match as a whole.";
            };
            timeoutSecs = mkOption {
              type = types.nullOr types.ints.unsigned;
              default = null;
              description = "Time in seconds after which the action is ended; 600 if null.";
            };
          };
        }
      );
      default = { };
      description = "Commands that agents may ask to run.";
    };

    contextWindowTokens = mkOption {
      type = types.attrsOf types.ints.unsigned;
      default = { };
      example = {
        haiku = 200000;
        opus = 1000000;
      };
      description = "Windows in tokens by a part of the model's name, for all agents.";
    };

    notify = {
      command = mkOption {
        type = types.nullOr (types.listOf types.str);
        default = null;
        description = "Program that runs when something waits for the operator, with its arguments.";
      };
      webhook = mkOption {
        type = types.nullOr (types.either types.str (types.attrsOf types.str));
        default = null;
        example = {
          credential = "hook-url";
        };
        description = "URL that is called instead.";
      };
    };

    credentials = mkOption {
      type = types.attrsOf types.str;
      default = { };
      description = "Files that systemd shows to the broker, by the names under which `notify.webhook` and `settings.broker.traces.headers` refer to them.";
    };

    flakeInputs = mkOption {
      type = types.attrsOf types.raw;
      default = { };
      description = "Passed to the modules of `agents` as the argument `flakeInputs`.";
    };

    settings = mkOption {
      type = types.submodule {
        freeformType = types.attrsOf value;
        options = {
          hive = section "hive";
          broker = section "broker";
          operator = section "operator";
          claude = section "claude";
        };
      };
      default = { };
      description = "hive.toml, by its own keys. What the other options say is added.";
    };

    agents = mkOption {
      type = types.attrsOf (
        types.submodule {
          imports = [ ./agent-options.nix ];
          config._module.args.flakeInputs = cfg.flakeInputs;
        }
      );
      default = { };
      description = "The agents of the hive, each with a service of its own.";
    };
  };
}
