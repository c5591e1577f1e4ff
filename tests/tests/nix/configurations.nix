# The configurations by the names of their files in golden/. A module can have any option of NixOS that nixos.nix stands for.
{ package }:

let
  hive = values: { module.services.hive = { enable = true; } // values; };
  agent = values: hive { agents.ada = values; };
  both = values: other: { module = { services.hive = { enable = true; } // values; } // other; };
in
{
  # Valid ones.
  off.module = { };
  empty = hive { };
  minimal = hive {
    operators = [ "mara" ];
    claudePackage = package "claude-code";
    agents.ada = { };
  };
  a_tree = hive {
    operators = [
      "mara"
      "noor"
    ];
    agents.ada.role = "leads";
    agents.bob = {
      parent = "ada";
      role = "reviews \"quoted\" text,\nand lines";
    };
    agents.eve.parent = "bob";
  };
  names = hive {
    name = "garden";
    domain = "example.org";
    swarm = "north";
    operatorPronouns = "they/them";
    journalUnits = [ "nginx.service" ];
    actions.apply_commit = {
      command = [
        "systemctl"
        "start"
        "rebuild@{commit}.service"
      ];
      preview = [
        "git"
        "diff"
        "--stat"
        "HEAD"
        "{commit}"
      ];
      description = "Builds a commit of the host.";
      agents = [ "ada" ];
      args.commit = "[0-9a-f]{40}";
      timeoutSecs = 3600;
    };
    contextWindowTokens = {
      haiku = 200000;
      opus = 1000000;
    };
  };
  notify_by_command = hive {
    notify.command = [
      "/run/current-system/sw/bin/logger"
      "hive"
    ];
  };
  notify_by_webhook = hive {
    notify.webhook.credential = "hook-url";
    credentials.hook-url = "/run/keys/hook-url";
  };
  another_group = hive {
    group = "keepers";
    operators = [ "mara" ];
  };
  another_package = hive {
    package = package "hive-next";
    packages = [
      (package "git")
      (package "ripgrep")
    ];
    agents.ada.packages = [ (package "cargo") ];
  };
  cross = hive { agents.ada = { }; } // {
    isCross = true;
  };
  every_key_of_an_agent = hive {
    credentials.hook-url = "/run/keys/hook-url";
    agents.root = { };
    agents.ada = {
      parent = "root";
      role = "answers questions";
      model = "opus";
      toolGroups = [
        "messaging"
        "inbox"
      ];
      allowedRecipients = [
        "root"
        "operator"
      ];
      capabilities = [ "query_agent_state" ];
      grants = [ "create_agent" ];
      uids = [ 1000 ];
      users = [
        "hive-ada"
        "helper"
      ];
      unit = "hive@ada.service";
      stateDir = "/srv/ada/state";
      homeDir = "/srv/ada/home";
      env = {
        TZ = "UTC";
        ANTHROPIC_API_KEY.credential = "anthropic";
        OTHER.file = "/run/keys/other";
      };
      credentials.anthropic = "/run/keys/anthropic";
      process = "resident";
      residentIdleSecs = 900;
      residentMemoryMib = 768;
      maxRetries = 2;
      turnIdleTimeoutSecs = 1800;
      turnMaxSecs = 3600;
      rateLimitSleepSecs = 300;
      drainGraceSecs = 20;
      killGraceMs = 5000;
      heartbeatSecs = 10;
      contextWindowTokens = 200000;
      autoCompact = false;
      compactWatermarkTokens = 150000;
      autoResetWatermarkTokens = 100000;
      autoResetCheckpoint = true;
      cacheTtlSecs = 3600;
      reset = {
        dailyAt = "04:00";
        idleMinutes = 60;
        notes = true;
      };
      systemPrompt = "/etc/hive/prompt.md";
      claudePlugins = [ "formatter@market" ];
      claudeMarketplaces = [ "example/market" ];
      claudePluginsAutoUpdate = true;
      cargo.shortMessages = false;
      bashTimeoutSecs = 1800;
      bashTimeoutMaxSecs = 86400;
      bashTasksMax = 16;
      bashOutputMaxMib = 64;
      bashMemoryMaxMib = 1024;
      bashCpuSecsMax = 3600;
      bashProcessesMax = 1000;
      bashFileMaxMib = 1024;
      kickOnStart = "never";
      onDemand = true;
      heartbeat = {
        every = "30m";
        between = "08:00-22:00";
        zone = "Europe/Berlin";
      };
      availableModels = [
        "opus"
        "sonnet"
      ];
      sandboxLevel = "none";
      readable = [ "/srv/data" ];
      writable = [ "/srv/shared" ];
      devices = [ "/dev/dri" ];
      userNamespaces = true;
      limits = {
        sendsPerMinuteMax = 60;
        senderStoredBytesMax = 5000000000;
        questionsOpenMax = 3;
        remindersPendingMax = 4;
        childrenMax = 3;
        schedulesMax = 4;
      };
      extraMcpServers.notes = {
        command = "${package "notes"}/bin/notes-mcp";
        args = [
          "--dir"
          "notes"
        ];
        env.NOTES_KEY.credential = "anthropic";
        allowedTools = [
          "list"
          "read_*"
        ];
        timeoutSeconds = 10;
      };
      extraMcpServers.plain.command = "plain-mcp";
    };
  };
  every_key_of_the_broker = hive {
    settings = {
      hive.isolation = "none";
      broker = {
        state_dir = "/var/lib/hive";
        runtime_dir = "/run/hive";
        agent_unit = "hive@{name}.service";
        retention_days = 7;
        metrics.listen = "127.0.0.1:9464";
        traces = {
          otlp = "https://collector.example.org:4318/v1/traces";
          headers.authorization.file = "/etc/hive/otlp-token";
        };
        backup = {
          every = "12h";
          keep = 3;
          dir = "/backup/hive";
        };
        limits = {
          body_bytes_max = 1000;
          inbox_depth_max = 100;
          sender_stored_bytes_max = 1000000;
          sends_per_minute_max = 60;
          attempts_max = 3;
          harness_grace_ms = 30000;
          retry_backoff_base_ms = 1000;
          retry_backoff_max_ms = 60000;
          park_backoff_base_ms = 1000;
          park_backoff_max_ms = 60000;
          on_demand_idle_ms = 60000;
          rate_limit_park_ms = 60000;
          request_id_hours = 24;
          turn_events_hours = 24;
          turn_events_bytes_max = 1000000;
          questions_open_max = 5;
          reminders_pending_max = 5;
          children_max = 6;
          schedules_max = 7;
        };
      };
    };
  };
  metrics_on_a_socket = hive {
    settings.broker.metrics = {
      socket = "/run/hive/metrics/hived.sock";
      group = "hive-metrics";
    };
  };
  a_socket_of_metrics_for_another_group = hive {
    settings.broker.metrics = {
      socket = "/run/hive/metrics/hived.sock";
      group = "prometheus";
    };
  };
  every_key_of_claude = hive {
    settings.claude = {
      command = "claude";
      env.TZ = "UTC";
      mcp_server_name = "fleet";
      process = "resident";
      resident_idle_secs = 900;
      resident_memory_mib = 768;
      max_retries = 2;
      turn_idle_timeout_secs = 1800;
      turn_max_secs = 3600;
      rate_limit_sleep_secs = 300;
      drain_grace_secs = 20;
      kill_grace_ms = 5000;
      heartbeat_secs = 10;
      auto_compact = true;
      compact_watermark_tokens = 150000;
      auto_reset_watermark_tokens = 100000;
      auto_reset_checkpoint = false;
      cache_ttl_secs = 3600;
      reset = {
        daily_at = "never";
        idle_minutes = 60;
        notes = false;
      };
      system_prompt = "/etc/hive/prompt.md";
      plugins_auto_update = false;
      cargo_short_messages = true;
      bash_timeout_secs = 1800;
      bash_timeout_max_secs = 86400;
      bash_tasks_max = 16;
      bash_output_max_mib = 64;
      bash_memory_max_mib = 1024;
      bash_cpu_secs_max = 3600;
      bash_processes_max = 1000;
      bash_file_max_mib = 1024;
    };
  };
  limits_of_resources = agent {
    memoryMax = "4G";
    memoryHigh = "3G";
    cpuQuota = "200%";
    tasksMax = 512;
  };
  a_user_of_another_name = agent {
    user = {
      name = "ada";
      uid = 4001;
      gid = 4002;
    };
  };
  a_container = hive {
    claudePackage = package "claude-code";
    agents.bob = { };
    agents.ada = {
      isolation = "container";
      user.uid = 4001;
      memoryMax = "4G";
      cpuQuota = "50%";
      env.ANTHROPIC_API_KEY.credential = "anthropic";
      credentials.anthropic = "/run/keys/anthropic";
      containerConfig.environment.systemPackages = [ (package "cargo") ];
    };
  };
  a_container_with_sudo = agent {
    isolation = "container";
    user = {
      name = "ada";
      uid = 4001;
      gid = 4002;
      passwordlessSudo = true;
    };
    readable = [ "/srv/data" ];
  };
  a_container_with_grants = agent {
    isolation = "container";
    user.uid = 4001;
    homeDir = "/srv/ada";
    readable = [ "/srv/data" ];
    writable = [ "/srv/shared" ];
    devices = [ "/dev/dri" ];
  };
  inputs_of_a_flake = hive {
    flakeInputs.notes.packages.default = package "notes-of-a-flake";
    agents.ada =
      { flakeInputs, name, ... }:
      {
        role = "I am ${name}";
        extraMcpServers.notes.command = "${flakeInputs.notes.packages.default}/bin/notes";
      };
  };
  definitions_of_several_modules.module = {
    imports = [
      { services.hive.enable = true; }
      { services.hive.operators = [ "mara" ]; }
      {
        services.hive.operators = [ "noor" ];
        services.hive.agents.ada.env.A = "1";
      }
      { services.hive.agents.ada.env.B = "2"; }
      { services.hive.settings.agents.zoe.role = "has no service here"; }
    ];
  };
  # The test of the services boots it, on Debian.
  a_host_that_is_booted = hive {
    operators = [ "mara" ];
    credentials.hook = "/etc/keys/hook";
    notify.webhook.credential = "hook";
    settings.claude.command = "/usr/bin/scripted-claude";
    agents.ada = {
      user = {
        name = "ada";
        uid = 4001;
      };
      stateDir = "/srv/ada/state";
      homeDir = "/srv/ada/home";
      readable = [ "/srv/data" ];
      writable = [ "/srv/shared" ];
      devices = [ "/dev/null" ];
      memoryMax = "1G";
      cpuQuota = "150%";
      tasksMax = 400;
      env.KEY.credential = "key";
      credentials.key = "/etc/keys/key";
    };
  };
  # Likewise, as a container of the Debian tree.
  a_container_that_is_booted = hive {
    settings.claude.command = "/usr/bin/scripted-claude";
    agents.ada = {
      isolation = "container";
      user.uid = 4001;
      env.KEY.credential = "key";
      credentials.key = "/etc/keys/key";
    };
  };
  a_launcher = hive {
    launcher.enable = true;
    group = "hive-admins";
    agents.ada = { };
    agents.bob = {
      parent = "ada";
      isolation = "container";
      user.uid = 4001;
    };
  };
  an_empty_list_of_recipients = agent { allowedRecipients = [ ]; };

  keys_in_the_store = agent {
    env.ANTHROPIC_API_KEY = "in the store";
    env.TZ = "UTC";
    extraMcpServers.notes = {
      command = "notes-mcp";
      env.NOTES_TOKEN = "in the store";
      env.GH_TOKEN = "\${GH_TOKEN}";
    };
  };
  a_key_of_all_agents_in_the_store = hive {
    settings.claude.env.ANTHROPIC_API_KEY = "in the store";
    notify.webhook = "https://example.org/hook/token";
  };

  # Refused by the checks of the module.
  sudo_with_a_user = agent { user.passwordlessSudo = true; };
  sudo_with_a_writable_directory = agent {
    isolation = "container";
    user.uid = 4001;
    user.passwordlessSudo = true;
    writable = [ "/srv/shared" ];
  };
  sudo_with_a_home = agent {
    isolation = "container";
    user.uid = 4001;
    user.passwordlessSudo = true;
    homeDir = "/srv/ada";
  };
  a_user_that_is_root = agent { user.name = "root"; };
  a_uid_of_root = agent { user.uid = 0; };
  a_user_that_is_an_operator = hive {
    operators = [ "mara" ];
    agents.ada.user.name = "mara";
  };
  a_user_in_the_group_of_operators = both { agents.ada = { }; } {
    users.users.hive-ada.extraGroups = [ "hive-operators" ];
  };
  a_user_that_is_a_member_of_the_group = both { agents.ada = { }; } {
    users.groups.hive-operators.members = [ "hive-ada" ];
  };
  a_user_of_a_person = both { agents.ada.user.name = "mara"; } {
    users.users.mara.isNormalUser = true;
  };
  a_user_of_the_hive = agent { user.name = "hive-launcher"; };
  a_shared_user = hive {
    agents.ada.user.name = "workers";
    agents.bob.user.name = "workers";
  };
  a_shared_uid = hive {
    agents.ada.user.uid = 4001;
    agents.bob.user.uid = 4001;
  };
  a_uid_of_someone_else = both { agents.ada.user.uid = 1000; } {
    users.users.mara = {
      isNormalUser = true;
      uid = 1000;
    };
  };
  a_container_without_a_uid = agent { isolation = "container"; };
  a_container_with_a_large_uid = agent {
    isolation = "container";
    user.uid = 70000;
  };
  a_container_whose_name_has_an_underscore = hive {
    agents.a_b = {
      isolation = "container";
      user.uid = 4001;
    };
  };
  a_name_that_is_no_name = hive { agents."Ada Two" = { }; };
  a_long_name = hive { agents.a-name-of-more-than-twenty-six-characters = { }; };
  an_unknown_credential = agent { env.KEY.credential = "missing"; };
  an_unknown_credential_of_a_webhook = hive { notify.webhook.credential = "missing"; };
  an_unknown_credential_of_a_header_of_traces = hive {
    settings.broker.traces = {
      otlp = "http://127.0.0.1:4318/v1/traces";
      headers.authorization.credential = "missing";
    };
  };
  a_credential_in_the_store = agent { credentials.key = "/nix/store/abc-key"; };
  a_relative_credential = hive { credentials.key = "keys/key"; };
  a_command_and_a_webhook = hive {
    notify.command = [ "logger" ];
    notify.webhook = "https://example.org/hook";
  };
  another_state_directory = hive { settings.broker.state_dir = "/srv/hive"; };
  a_home_below_home = agent { homeDir = "/home/ada"; };
  a_relative_directory = agent { writable = [ "work" ]; };
  a_directory_of_the_host = agent { stateDir = "/srv"; };
  a_directory_of_the_hive = agent { homeDir = "/var/lib/hive/backups"; };
  a_directory_of_another_agent = hive {
    agents.ada.stateDir = "/srv/shared";
    agents.bob.stateDir = "/srv/shared";
  };
  a_file_in_the_store = agent { env.ANTHROPIC_API_KEY.file = "/nix/store/abc-key"; };
  a_module_of_a_container_without_one = agent { containerConfig.networking.hostName = "ada"; };

  # Refused by the module system.
  an_unknown_option = hive { agnets.ada = { }; };
  an_unknown_key_of_an_agent = agent { modle = "opus"; };
  a_number_out_of_bounds = agent { contextWindowTokens = 5; };
  a_word_that_is_none = agent { isolation = "vm"; };
  a_text_that_is_a_number = agent { role = 7; };
  a_literal_path_as_a_credential = agent { credentials.key = ./configurations.nix; };
  two_groups_for_a_socket = hive { settings.broker.socket_group = "others"; };
  two_models.module.imports = [
    {
      services.hive.enable = true;
      services.hive.agents.ada.model = "opus";
    }
    { services.hive.agents.ada.model = "sonnet"; }
  ];

  # Valid by their types, and refused by the daemon when the host is built.
  an_unknown_key_of_the_broker = hive { settings.broker.retention_dyas = 7; };
  a_parent_that_is_missing = agent { parent = "bob"; };
  a_model_that_is_not_available = agent {
    model = "opus";
    availableModels = [ "sonnet" ];
  };
}
