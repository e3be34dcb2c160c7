//! The certificates with which a switch and its controllers prove who they are.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, ServerConfig,
    ServerConnection, SignatureScheme,
};

/// Why certificates cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum CertificatesError {
    /// The switch's certificate, or its chain, is no PEM.
    Certificate(pem::Error),
    /// The private key is no PEM.
    Key(pem::Error),
    /// The certificates of the authority are no PEM.
    Authority(pem::Error),
    /// There is no certificate of an authority.
    NoAuthority,
    /// A certificate of the authority cannot be used.
    BadAuthority(rustls::Error),
    /// The certificates of the authority cannot be used together.
    BadAuthorities(VerifierBuilderError),
    /// Certificate and key cannot be used together.
    Pair(rustls::Error),
}

impl fmt::Display for CertificatesError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Certificate(_) => "the switch's certificate can't be read",
            Self::Key(_) => "the private key can't be read",
            Self::Authority(_) => "the certificates of the controllers' authority can't be read",
            Self::NoAuthority => "the file of the controllers' authority has no certificate",
            Self::BadAuthority(_) | Self::BadAuthorities(_) => {
                "the certificates of the controllers' authority can't be used"
            }
            Self::Pair(_) => "certificate and key can't be used together",
        })
    }
}

impl std::error::Error for CertificatesError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Certificate(error) | Self::Key(error) | Self::Authority(error) => Some(error),
            Self::BadAuthority(error) | Self::Pair(error) => Some(error),
            Self::BadAuthorities(error) => Some(error),
            Self::NoAuthority => None,
        }
    }
}

/// A certificate of the switch with its key, and the authority that certifies controllers.
///
/// Both sides must show a certificate. The name in that of a controller is not compared with its address: what counts is the
/// authority, as in other switches.
#[derive(Clone, Debug)]
pub struct Certificates {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Certificates {
    /// Reads PEM: a certificate with its chain, its private key, and the certificates of the authority.
    ///
    /// # Errors
    /// See [`CertificatesError`].
    pub fn from_pem(certificate: &[u8], key: &[u8], authority: &[u8]) -> Result<Self, CertificatesError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain: Vec<CertificateDer<'_>> = CertificateDer::pem_slice_iter(certificate)
            .map(|certificate| certificate.map(CertificateDer::into_owned))
            .collect::<Result<_, _>>()
            .map_err(CertificatesError::Certificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(CertificatesError::Key)?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority) {
            let certificate = certificate.map_err(CertificatesError::Authority)?;
            roots.add(certificate).map_err(CertificatesError::BadAuthority)?;
        }
        if roots.is_empty() {
            return Err(CertificatesError::NoAuthority);
        }
        let roots = Arc::new(roots);
        let of_controllers = WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone())
            .build()
            .map_err(CertificatesError::BadAuthorities)?;
        let of_clients = WebPkiClientVerifier::builder_with_provider(roots, provider.clone())
            .build()
            .map_err(CertificatesError::BadAuthorities)?;
        let client = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(CertificatesError::Pair)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyName(of_controllers)))
            .with_client_auth_cert(chain.clone(), key.clone_key())
            .map_err(CertificatesError::Pair)?;
        let server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(CertificatesError::Pair)?
            .with_client_cert_verifier(of_clients)
            .with_single_cert(chain, key)
            .map_err(CertificatesError::Pair)?;
        Ok(Self { client: Arc::new(client), server: Arc::new(server) })
    }

    /// The switch's side of TLS on a connection that it began.
    pub(super) fn connect(&self, address: SocketAddr) -> Result<rustls::Connection, rustls::Error> {
        let name = ServerName::IpAddress(address.ip().into());
        ClientConnection::new(self.client.clone(), name).map(Into::into)
    }

    /// The switch's side of TLS on a connection that a controller began.
    pub(super) fn accept(&self) -> Result<rustls::Connection, rustls::Error> {
        ServerConnection::new(self.server.clone()).map(Into::into)
    }
}

/// Verifies that an authority certified a server, whatever its name.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.0.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // The name is compared last, after the authority and the dates.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
