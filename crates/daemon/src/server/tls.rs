//! TCP, which is served only with TLS and a token.

use super::private::{SecretError, open_secret};
use super::tokens::TokensError;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// Settings for TCP.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// The address and port.
    pub address: SocketAddr,
    /// A PEM file with the certificate and its chain.
    pub certificate: PathBuf,
    /// A PEM file with the private key.
    pub key: PathBuf,
    /// A file with the administrator's token, at least 16 bytes. Surrounding white space is ignored.
    pub token: Option<PathBuf>,
    /// A file of tokens of users, which is read again when it changes and at SIGHUP.
    pub tokens: Option<PathBuf>,
}

/// Why TCP cannot be served.
#[derive(Debug)]
pub enum TlsError {
    /// A file contains no certificate or key.
    Pem(PathBuf, rustls::pki_types::pem::Error),
    /// The private key can't be opened, or other users of the host can use it.
    Secret(SecretError),
    /// The tokens can't be used.
    Tokens(TokensError),
    /// The certificate and the key cannot be used.
    Tls(rustls::Error),
    /// The address cannot be bound.
    Bind(SocketAddr, std::io::Error),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pem(path, _) => write!(f, "{} has no certificate or key in PEM", path.display()),
            Self::Secret(error) => error.fmt(f),
            Self::Tokens(error) => error.fmt(f),
            Self::Tls(_) => f.write_str("certificate and key can't be used"),
            Self::Bind(address, _) => write!(f, "can't listen at {address}"),
        }
    }
}

impl From<TokensError> for TlsError {
    fn from(error: TokensError) -> Self {
        Self::Tokens(error)
    }
}

impl std::error::Error for TlsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Bind(_, error) => Some(error),
            Self::Pem(_, error) => Some(error),
            Self::Tls(error) => Some(error),
            // `Display` prints the cause's own message, so the chain continues with the cause's source.
            Self::Secret(error) => error.source(),
            Self::Tokens(error) => error.source(),
        }
    }
}

/// A TLS acceptor with the certificate and its key.
pub(super) fn acceptor(tcp: &Tcp) -> Result<TlsAcceptor, TlsError> {
    let pem = |path: &Path, error| TlsError::Pem(path.into(), error);
    let certificates: Vec<CertificateDer> = CertificateDer::pem_file_iter(&tcp.certificate)
        .and_then(Iterator::collect)
        .map_err(|error| pem(&tcp.certificate, error))?;
    let key = open_secret(&tcp.key).map_err(TlsError::Secret)?;
    let key = PrivateKeyDer::from_pem_reader(key).map_err(|error| pem(&tcp.key, error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let settings = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Tls)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(TlsError::Tls)?;
    Ok(TlsAcceptor::from(Arc::new(settings)))
}
