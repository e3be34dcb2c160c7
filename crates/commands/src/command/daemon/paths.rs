//! The default paths of a daemon.

use std::path::{Path, PathBuf};

use api::client;

/// The store of the system's daemon.
const SYSTEM_STORE: &str = "/var/lib/clickbox/store";

/// The default store for a socket. Only default sockets have one, because there may be several daemons.
pub(super) fn default_store(socket: &Path) -> Option<PathBuf> {
    let default_sockets = client::sockets();
    if default_sockets.last().is_some_and(|system| system == socket) {
        return Some(SYSTEM_STORE.into());
    }
    if !default_sockets.iter().any(|known| known == socket) {
        return None;
    }
    let variable = |name: &str| std::env::var_os(name).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let folder = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")))?;
    Some(folder.join("clickbox/store"))
}

/// The launcher's socket: named after the store, so that a daemon finds the fabric of its store whatever socket it
/// listens on.
pub(super) fn launcher_socket(store: &Path) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push(".launcher");
    path.into()
}
