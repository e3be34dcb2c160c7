//! The options that choose the daemon.

use std::io::Read;
use std::path::PathBuf;

use api::client::{Address, Credentials};
use clap::Args;

use super::client::Client;
use crate::error::{CommandError, FileError};

/// The environment variable with the token for a remote daemon.
const TOKEN_VARIABLE: &str = "CLICKBOX_TOKEN";

/// The environment variable with the path of a certificate file.
const CERTIFICATES_VARIABLE: &str = "CLICKBOX_CERTIFICATES";

/// The options that choose the daemon.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Daemon")]
pub(crate) struct Connection {
    /// Address of the daemon: the path of a socket, or https://HOST:PORT [default: $CLICKBOX_SOCKET, else
    /// clickbox.sock in $XDG_RUNTIME_DIR, else /run/clickbox/clickbox.sock]
    #[arg(long, visible_alias = "daemon", value_name = "ADDRESS")]
    socket: Option<Address>,
    /// File with the token for a daemon behind https, which only you may be able to read [default: the token in
    /// $CLICKBOX_TOKEN]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// File with the certificates to trust for https [default: $CLICKBOX_CERTIFICATES, else the system's]
    #[arg(long, value_name = "FILE")]
    certificates: Option<PathBuf>,
}

impl Connection {
    /// The address of the daemon.
    pub(crate) fn address(&self) -> Result<Address, CommandError> {
        match &self.socket {
            Some(address) => Ok(address.clone()),
            None => Address::from_environment().map_err(CommandError::SocketVariable),
        }
    }

    /// A client of the daemon. Nothing is sent yet.
    pub(crate) fn client(&self) -> Result<Client, CommandError> {
        let token = match &self.token_file {
            Some(path) => {
                let mut text = String::new();
                let read = daemon::open_secret(path)?.read_to_string(&mut text);
                read.map_err(|error| FileError::new(path, error))?;
                Some(text.trim().to_string())
            }
            None => std::env::var(TOKEN_VARIABLE).ok(),
        };
        let certificates =
            self.certificates.clone().or_else(|| std::env::var_os(CERTIFICATES_VARIABLE).map(PathBuf::from));
        let address = self.address()?;
        if matches!(address, Address::Tls { .. }) {
            switch::name_services::limit_to_files_and_dns();
        }
        Ok(Client::new(address, &Credentials { token, certificates })?)
    }
}
