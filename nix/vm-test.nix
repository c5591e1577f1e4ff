# A host in a virtual machine: two agents and one in a container, a message to each, a broker that is killed, and an upgrade.
# For a machine with KVM: `nix build .#checks.x86_64-linux.vm`.
{
  lib,
  callPackage,
  testers,
}:

let
  hive = callPackage ./package.nix { };

  # Answers like claude, without an account.
  scripted = hive.overrideAttrs {
    pname = "scripted-claude";
    cargoBuildFlags = [ "--package=hive-scripted" ];
    doCheck = false;
    postInstall = "";
  };

  # The same programs in another place, which is an upgrade to systemd and to the module.
  upgraded = hive.overrideAttrs (old: {
    postInstall = old.postInstall + "touch $out/upgraded\n";
  });
in
testers.runNixOSTest {
  name = "hive";

  nodes.host =
    { pkgs, ... }:
    {
      imports = [ ./module.nix ];
      environment.systemPackages = [ pkgs.jq ];
      users.users.mara.isNormalUser = true;
      virtualisation.memorySize = 2048;

      services.hive = {
        enable = true;
        package = lib.mkDefault hive;
        operators = [ "mara" ];
        settings.claude.command = "${scripted}/bin/scripted-claude";
        agents.ada = { };
        agents.bob.parent = "ada";
        agents.cid = {
          isolation = "container";
          user.uid = 4001;
        };
      };
      specialisation.upgraded.configuration.services.hive.package = upgraded;
    };

  testScript = ''
    agents = ["ada", "bob", "cid"]
    turns = {agent: 0 for agent in agents}


    def hivectl(words):
        return f"runuser -u mara -- hivectl {words}"


    def send_to_all(text):
        for agent in agents:
            host.succeed(hivectl(f"send {agent} '{text}'"))
            turns[agent] += 1
        for agent in agents:
            done = hivectl(f"turn list {agent} --json | jq '[.[] | select(.outcome == \"ok\")] | length'")
            host.wait_until_succeeds(f"test $({done}) -ge {turns[agent]}")


    def socket(agent):
        return host.succeed(f"stat -c %i /run/hive/agents/{agent}/hive.sock")


    host.wait_for_unit("hived.service")
    for unit in ["hive@ada", "hive@bob", "container@hive-cid"]:
        host.wait_for_unit(f"{unit}.service")
    host.succeed("nixos-container run hive-cid -- systemctl is-active hive@cid.service")

    with subtest("each agent gets a message and runs a turn"):
        send_to_all("first")

    with subtest("strangers are no operators, and agents are not each other"):
        host.fail("runuser -u nobody -- hivectl status")
        host.fail("runuser -u hive-bob -- env HIVE_SOCKET=/run/hive/agents/ada/hive.sock hive wake --from test --body hello")

    with subtest("a container sees its own files only"):
        inside = "nixos-container run hive-cid --"
        host.succeed(f"{inside} test -S /run/hive/agents/cid/hive.sock")
        host.fail(f"{inside} test -e /run/hive/hived.sock")
        host.fail(f"{inside} test -e /run/hive/agents/ada")
        host.fail(f"{inside} test -e /var/lib/hive/hive.db")

    with subtest("a killed broker comes back with the same sockets"):
        sockets = [socket(agent) for agent in agents]
        host.succeed("systemctl kill --signal=KILL --kill-whom=main hived.service")
        send_to_all("after a kill")
        assert sockets == [socket(agent) for agent in agents]

    with subtest("an upgrade closes no socket"):
        broker = host.succeed("systemctl show --value --property=MainPID hived.service")
        host.succeed("/run/current-system/specialisation/upgraded/bin/switch-to-configuration test")
        host.wait_for_unit("hived.service")
        assert broker != host.succeed("systemctl show --value --property=MainPID hived.service")
        assert sockets == [socket(agent) for agent in agents]
        send_to_all("after an upgrade")
  '';
}
