//! Settings of a daemon.

use crate::fabric::Connector;
use crate::symbols::SymbolFile;
use crate::upgrade::UpgradeHelper;
use protocol::fabric::CheckLimits;
use std::path::PathBuf;
use std::sync::Arc;

/// Settings of a daemon.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How the daemon gets its fabrics.
    pub connector: Arc<dyn Connector>,
    /// The name of the image that boxes run, for display.
    pub image_name: String,
    /// The symbols of the image, which crash reports use.
    pub symbols: Option<SymbolFile>,
    /// The file that stores definitions; its folder must exist. `None`: definitions are kept in memory and lost when
    /// the daemon ends.
    pub store: Option<PathBuf>,
    /// Whether the fabric and its boxes end with the daemon, even if it is killed. They always do without a store, because
    /// no other daemon could adopt them.
    pub ends_fabric: bool,
    /// Starts the program that replaces this one. `None`: the daemon cannot be replaced while it runs.
    pub upgrade_helper: Option<Arc<UpgradeHelper>>,
    /// Whether each owner has a fabric of its own. Its share of the processors is the connector's concern.
    pub fabric_per_owner: bool,
    /// The limits of each check of a configuration. A fabric bounds them ([`CheckLimits::bounded`]).
    pub check_limits: CheckLimits,
    /// The folder for the sockets at which functions in other processes join services. `None`: there can be no such services.
    pub function_folder: Option<PathBuf>,
    /// Maximum 4 KB pages of the store. `None`: as many as the disk holds.
    pub store_pages: Option<u32>,
}

impl Settings {
    /// Default settings: a store in memory.
    pub fn new(connector: Arc<dyn Connector>, image_name: impl Into<String>) -> Self {
        Self {
            connector,
            image_name: image_name.into(),
            symbols: None,
            store: None,
            ends_fabric: false,
            upgrade_helper: None,
            fabric_per_owner: false,
            check_limits: CheckLimits::default(),
            function_folder: None,
            store_pages: None,
        }
    }
}
