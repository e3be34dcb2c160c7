//! Notifications to the service manager (systemd's `sd_notify` protocol): readiness, shutdown, and the watchdog.
//!
//! Without `NOTIFY_SOCKET` in the environment every function here does nothing. A notification that cannot be sent is
//! ignored: the daemon works without its manager, and the manager notices the silence.

use crate::supervisor::Supervisor;
use sd_notify::NotifyState;
use std::future::pending;

/// Reports that the API is reachable and that all stored boxes and switches are restored.
pub(super) fn ready() {
    let _ = sd_notify::notify(&[NotifyState::Ready]);
}

/// Reports that the daemon has begun to shut down.
pub(super) fn stopping() {
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
}

/// Reports that another process has replaced this one.
pub(super) fn replaced_by(pid: u32) {
    let _ = sd_notify::notify(&[NotifyState::MainPid(pid)]);
}

/// Reports twice per watchdog period that the daemon responds. It never returns.
///
/// A report needs this task, a thread for operations, and the thread that moves packets. If one of them hangs, the
/// reports stop and the service manager restarts the daemon.
pub(super) async fn run_watchdog(supervisor: Supervisor) {
    let Some(period) = sd_notify::watchdog_enabled().filter(|period| !period.is_zero()) else {
        return pending().await;
    };
    let mut ticks = tokio::time::interval(period / 2);
    loop {
        ticks.tick().await;
        let asked = supervisor.clone();
        if matches!(tokio::task::spawn_blocking(move || asked.is_responsive()).await, Ok(true)) {
            let _ = sd_notify::notify(&[NotifyState::Watchdog]);
        }
    }
}
