//! The report to the broker that the directories of a purged agent are deleted.

use std::path::Path;
use std::time::Duration;

use hive_proto::connect::connect;
use hive_proto::v1::FinishPurgeRequest;
use hive_proto::v1::admin_service_client::AdminServiceClient;
use tokio::time::Instant;

/// Maximum wait for a broker that restarts.
const BROKER_PATIENCE: Duration = Duration::from_secs(30);
/// Pause between two tries to reach it.
const BROKER_PAUSE: Duration = Duration::from_millis(200);

/// Reports that a purge is finished, again and again while the broker may be starting.
pub(crate) async fn finish(socket: &Path, purge_id: u64) -> Result<(), String> {
    let until = Instant::now() + BROKER_PATIENCE;
    loop {
        match try_finish(socket, purge_id).await {
            Err(_) if Instant::now() < until => tokio::time::sleep(BROKER_PAUSE).await,
            done => return done,
        }
    }
}

async fn try_finish(socket: &Path, purge_id: u64) -> Result<(), String> {
    let channel = connect(socket).await.map_err(|error| error.to_string())?;
    // One id for one purge, so that a repeat is the same request.
    let request = FinishPurgeRequest { request_id: format!("up-purge-{purge_id}"), purge_id };
    AdminServiceClient::new(channel)
        .finish_purge(request)
        .await
        .map_err(|status| status.message().to_owned())?;
    Ok(())
}
