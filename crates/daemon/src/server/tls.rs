//! TCP, which is served only with TLS and a token.

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use subtle::ConstantTimeEq;
use tokio_rustls::TlsAcceptor;

/// Minimum bytes of a token: shorter ones can be guessed.
const MIN_TOKEN_LENGTH: usize = 16;

/// Settings for TCP.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// The address and port.
    pub address: SocketAddr,
    /// A PEM file with the certificate and its chain.
    pub certificate: PathBuf,
    /// A PEM file with the private key.
    pub key: PathBuf,
    /// A file with the token that clients must present, at least 16 bytes. Surrounding white space is ignored.
    pub token: PathBuf,
}

/// Why TCP cannot be served.
#[derive(Debug)]
pub enum TlsError {
    /// A file cannot be read.
    File(PathBuf, std::io::Error),
    /// A file contains no certificate or key.
    Pem(PathBuf, rustls::pki_types::pem::Error),
    /// The token is too short.
    Token(PathBuf),
    /// The certificate and the key cannot be used.
    Tls(rustls::Error),
    /// The address cannot be bound.
    Bind(SocketAddr, std::io::Error),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, _) => write!(f, "can't read {}", path.display()),
            Self::Pem(path, _) => write!(f, "{} has no certificate or key in PEM", path.display()),
            Self::Token(path) => write!(
                f,
                "the token in {} is too short: it must have at least {MIN_TOKEN_LENGTH} bytes",
                path.display()
            ),
            Self::Tls(_) => f.write_str("certificate and key can't be used"),
            Self::Bind(address, _) => write!(f, "can't listen at {address}"),
        }
    }
}

impl std::error::Error for TlsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(_, error) | Self::Bind(_, error) => Some(error),
            Self::Pem(_, error) => Some(error),
            Self::Tls(error) => Some(error),
            Self::Token(_) => None,
        }
    }
}

/// The token that clients must present.
#[derive(Clone)]
pub(super) struct Token(Arc<[u8]>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    pub(super) fn read(path: &Path) -> Result<Self, TlsError> {
        let bytes = std::fs::read(path).map_err(|error| TlsError::File(path.into(), error))?;
        let token = bytes.trim_ascii();
        match token.len() >= MIN_TOKEN_LENGTH {
            true => Ok(Self(token.into())),
            false => Err(TlsError::Token(path.into())),
        }
    }

    /// Compares a client's token with this one in constant time.
    pub(super) fn matches(&self, presented: &[u8]) -> bool {
        self.0.ct_eq(presented).into()
    }
}

/// A TLS acceptor with the certificate and its key.
pub(super) fn acceptor(tcp: &Tcp) -> Result<TlsAcceptor, TlsError> {
    let pem = |path: &Path, error| TlsError::Pem(path.into(), error);
    let certificates: Vec<CertificateDer> = CertificateDer::pem_file_iter(&tcp.certificate)
        .and_then(Iterator::collect)
        .map_err(|error| pem(&tcp.certificate, error))?;
    let key = PrivateKeyDer::from_pem_file(&tcp.key).map_err(|error| pem(&tcp.key, error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let settings = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Tls)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(TlsError::Tls)?;
    Ok(TlsAcceptor::from(Arc::new(settings)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_compared_as_a_whole() {
        let token = Token(Arc::from(&b"0123456789abcdef"[..]));
        assert!(token.matches(b"0123456789abcdef"));
        for wrong in [&b""[..], b"0123456789abcde", b"0123456789abcdeF", b"0123456789abcdef0"] {
            assert!(!token.matches(wrong));
        }
    }
}
