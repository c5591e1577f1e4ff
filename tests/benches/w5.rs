//! W5: how long from exec to the first answered request, on a first boot and on existing state; and
//! the memory of an idle broker.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hive_proto::v1::GetServerInfoRequest;
use hive_proto::v1::server_info_service_client::ServerInfoServiceClient;
use hive_tests::binary;

use crate::report::Report;
use crate::sample::Sample;
use crate::servers;

const ROUNDS: usize = 9;

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let (mut echo, mut first, mut again, mut ratio, mut pss) =
        <(Sample, Sample, Sample, Sample, Sample)>::default();
    for _ in 0..ROUNDS {
        let dir = servers::disk_dir()?;
        std::fs::write(dir.path().join("hive.toml"), "[agents.a0]\n[agents.a1]\n")?;
        let floor = echo_start(dir.path())?;
        let (first_boot, _) = hived_start(dir.path()).await?;
        let (boot, memory) = hived_start(dir.path()).await?;
        echo.push(floor);
        first.push(first_boot);
        again.push(boot);
        ratio.push(boot / floor);
        pss.push(memory);
    }
    report.add("W5", "floor: exec of an echo server to its first answer", "ms", echo, None);
    report.add("W5", "first boot to the first answer", "ms", first, Some("15"));
    report.add("W5", "boot on existing state to the first answer", "ms", again, None);
    report.add("W5", "boot on existing state / floor", "", ratio, Some("3"));
    report.add("W5", "idle memory (PSS)", "MiB", pss, Some("12"));
    Ok(())
}

/// Tries again until it works: what is measured is the first moment at which it does.
fn connect(path: &Path, deadline: Instant) -> anyhow::Result<UnixStream> {
    loop {
        match UnixStream::connect(path) {
            Ok(conn) => return Ok(conn),
            Err(error) if Instant::now() > deadline => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_micros(50)),
        }
    }
}

fn echo_start(dir: &Path) -> anyhow::Result<f64> {
    let socket = dir.join("echo");
    let start = Instant::now();
    let mut server = Command::new(std::env::current_exe()?)
        .arg("echo-server")
        .env("ECHO_SOCKET", &socket)
        .spawn()?;
    let mut conn = connect(&socket, start + Duration::from_secs(10))?;
    conn.write_all(&[1])?;
    conn.read_exact(&mut [0])?;
    let span = start.elapsed();
    server.wait()?;
    Ok(span.as_secs_f64() * 1e3)
}

async fn hived_start(dir: &Path) -> anyhow::Result<(f64, f64)> {
    let socket = dir.join("run/hived.sock");
    let start = Instant::now();
    let mut hived = Command::new(binary::find("hive-broker", "hived"));
    hived
        .arg("--config")
        .arg(dir.join("hive.toml"))
        .arg("--state-dir")
        .arg(dir.join("state"))
        .arg("--runtime-dir")
        .arg(dir.join("run"));
    let mut hived = hived.env("HIVE_LOG", "warn").spawn()?;
    drop(connect(&socket, start + Duration::from_secs(10))?);
    let channel = hive_proto::connect::connect(&socket).await?;
    ServerInfoServiceClient::new(channel).get_server_info(GetServerInfoRequest::default()).await?;
    let span = start.elapsed();
    let pid = rustix::process::Pid::from_child(&hived);
    let memory = servers::pss_mib(pid);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
    hived.wait()?;
    Ok((span.as_secs_f64() * 1e3, memory))
}
