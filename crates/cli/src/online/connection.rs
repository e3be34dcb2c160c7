//! Which daemon a command talks to.

use std::path::PathBuf;

use api::client::{Address, Client, Credentials, SOCKET_VARIABLE};
use clap::Args;

use super::command_error::CommandError;

/// The variable of the environment that has the token of a daemon at another host.
const TOKEN_VARIABLE: &str = "CLICKBOX_TOKEN";

/// The variable of the environment that names a file of certificates.
const CERTIFICATES_VARIABLE: &str = "CLICKBOX_CERTIFICATES";

/// The daemon.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Daemon")]
pub(crate) struct Connection {
    /// Where the daemon is: the path of its socket, or https://HOST:PORT; without it $CLICKBOX_SOCKET, else the usual
    /// place.
    #[arg(long, visible_alias = "daemon", value_name = "ADDRESS")]
    socket: Option<Address>,
    /// The token of a daemon behind https is in this file; without it $CLICKBOX_TOKEN.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The certificate of a daemon behind https, or of who signed it; without it $CLICKBOX_CERTIFICATES, else the
    /// system's.
    #[arg(long, value_name = "FILE")]
    certificates: Option<PathBuf>,
}

impl Connection {
    /// Where the daemon is.
    pub(crate) fn address(&self) -> Result<Address, CommandError> {
        match &self.socket {
            Some(address) => Ok(address.clone()),
            None => Address::from_environment()
                .map_err(|error| CommandError::Usage(format!("{SOCKET_VARIABLE} is no address: {error}"))),
        }
    }

    /// A client of it. Nothing is sent yet.
    pub(crate) fn client(&self) -> Result<Client, CommandError> {
        let token = match &self.token_file {
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| CommandError::file(path, error))?;
                Some(text.trim().to_string())
            }
            None => std::env::var(TOKEN_VARIABLE).ok(),
        };
        let certificates =
            self.certificates.clone().or_else(|| std::env::var_os(CERTIFICATES_VARIABLE).map(PathBuf::from));
        Ok(Client::new(self.address()?, &Credentials { token, certificates })?)
    }
}
