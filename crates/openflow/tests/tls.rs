//! Connections with TLS over the loopback interface.

#[path = "support/software.rs"]
mod software;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use openflow::VERSION;
use openflow::connections::{
    Certificates, CertificatesError, ConnectionFault, Connections, Endpoint, Transport,
};
use openflow::message::{HEADER, Header, Hello, Message};
use openflow::session::{Agent, AgentLimits};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection,
};
use software::Software;

const TIMEOUT: Duration = Duration::from_secs(20);

/// An authority.
struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key.
struct Pair {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Authority {
    fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).expect("parameters");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(parameters, key).expect("an authority"))
    }

    /// A certificate of a name that no test connects to.
    fn certify(&self) -> Pair {
        let key = KeyPair::generate().expect("a key");
        let parameters = CertificateParams::new(["controller.example".to_string()]).expect("parameters");
        Pair { certificate: parameters.signed_by(&key, &self.0).expect("a certificate"), key }
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("an authority");
        Arc::new(roots)
    }

    /// The certificates of a switch that trusts this authority, with a pair of `own`.
    fn certificates(&self, own: &Pair) -> Certificates {
        let (certificate, key) = (own.certificate.pem(), own.key.serialize_pem());
        Certificates::from_pem(certificate.as_bytes(), key.as_bytes(), self.0.pem().as_bytes())
            .expect("certificates")
    }
}

impl Pair {
    fn chain(&self) -> Vec<CertificateDer<'static>> {
        vec![self.certificate.der().clone()]
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::try_from(self.key.serialize_der()).expect("a key")
    }
}

/// A controller's side of a connection.
struct Controller {
    socket: TcpStream,
    tls: rustls::Connection,
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A controller that accepts connections of switches which `authority` certified.
fn server(socket: TcpStream, authority: &Authority, own: &Pair) -> Controller {
    let verifier = WebPkiClientVerifier::builder_with_provider(authority.roots(), provider());
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(verifier.build().expect("a verifier"))
        .with_single_cert(own.chain(), own.key())
        .expect("a certificate");
    Controller { socket, tls: ServerConnection::new(Arc::new(config)).expect("TLS").into() }
}

/// A controller that connects to a switch, perhaps with a certificate.
fn client(address: SocketAddr, authority: &Authority, own: Option<&Pair>) -> Controller {
    let socket = TcpStream::connect(address).expect("the switch listens");
    socket.set_nonblocking(true).expect("a socket");
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(authority.roots());
    let config = match own {
        Some(own) => builder.with_client_auth_cert(own.chain(), own.key()).expect("a certificate"),
        None => builder.with_no_client_auth(),
    };
    let name = ServerName::try_from("controller.example").expect("a name");
    Controller { socket, tls: ClientConnection::new(Arc::new(config), name).expect("TLS").into() }
}

impl Controller {
    /// Moves bytes; false if the connection ended.
    fn advance(&mut self) -> bool {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return false,
            }
        }
        match self.tls.read_tls(&mut self.socket) {
            Ok(0) => return false,
            Err(error) if error.kind() != ErrorKind::WouldBlock => return false,
            _ => {}
        }
        let is_right = self.tls.process_new_packets().is_ok();
        while self.tls.wants_write() && self.tls.write_tls(&mut self.socket).is_ok() {}
        is_right
    }

    /// The next message of the switch.
    fn read(&mut self, connections: &mut Connections<Software>) -> Message {
        let (mut bytes, start) = (Vec::new(), Instant::now());
        loop {
            let missing = Header::decode(&bytes).map_or(HEADER, |header| header.length.into()) - bytes.len();
            let mut buffer = vec![0; missing];
            if let Ok(count) = self.tls.reader().read(&mut buffer) {
                bytes.extend_from_slice(&buffer[..count]);
            }
            if let Some(header) = Header::decode(&bytes)
                && bytes.len() == usize::from(header.length)
            {
                return Message::decode(header.message_type, &bytes[HEADER..]).expect("a right message");
            }
            assert!(start.elapsed() < TIMEOUT, "nothing comes");
            assert!(self.advance(), "the switch ended the connection");
            connections.turn(None, Duration::from_millis(1)).expect("a turn");
        }
    }

    fn write(&mut self, message: &Message) {
        let bytes = message.encode(1).expect("a short message");
        self.tls.writer().write_all(&bytes).expect("room");
    }

    /// Greets, and exchanges long messages: more than fits a record, and more than is read at once.
    fn converse(&mut self, connections: &mut Connections<Software>) {
        let hello = Message::Hello(Hello { versions: Some(1 << VERSION) });
        assert!(matches!(self.read(connections), Message::Hello(_)));
        self.write(&hello);
        let long = Message::EchoRequest(vec![7; 30_000]);
        for _ in 0..2 {
            self.write(&long);
            assert_eq!(self.read(connections), Message::EchoReply(vec![7; 30_000]));
        }
    }
}

fn connections(endpoint: Endpoint, certificates: Option<Certificates>) -> Connections<Software> {
    Connections::new(Agent::new(Software::new(2), AgentLimits::default()), &[endpoint], certificates)
}

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

fn accept(connections: &mut Connections<Software>, listener: &TcpListener) -> TcpStream {
    connections.turn(None, Duration::ZERO).expect("a turn");
    let (stream, _) = listener.accept().expect("the switch connects");
    stream.set_nonblocking(true).expect("a stream");
    stream
}

/// Turns until the connection of the switch ends, and returns why.
fn fault(connections: &mut Connections<Software>, controller: &mut Controller) -> ConnectionFault {
    let start = Instant::now();
    loop {
        if let Some(fault) = connections.statuses().next().and_then(|status| status.fault) {
            return fault;
        }
        assert!(start.elapsed() < TIMEOUT, "nothing ends");
        controller.advance();
        connections.turn(None, Duration::from_millis(1)).expect("a turn");
    }
}

#[test]
fn a_switch_connects_with_tls() {
    let authority = Authority::new();
    let (of_switch, of_controller) = (authority.certify(), authority.certify());
    let (listener, address) = listen();
    let endpoint = Endpoint { transport: Transport::Tls, address };
    let mut connections = connections(endpoint, Some(authority.certificates(&of_switch)));
    let stream = accept(&mut connections, &listener);
    // The name in the certificate is not the address.
    let mut controller = server(stream, &authority, &of_controller);
    controller.converse(&mut connections);
    let status = connections.statuses().next().expect("a status");
    assert!(status.role.is_some() && status.fault.is_none(), "{status:?}");
}

#[test]
fn a_switch_listens_with_tls() {
    let authority = Authority::new();
    let (of_switch, of_controller) = (authority.certify(), authority.certify());
    let (listener, address) = listen();
    drop(listener);
    let endpoint = Endpoint { transport: Transport::PassiveTls, address };
    let mut connections = connections(endpoint, Some(authority.certificates(&of_switch)));
    connections.turn(None, Duration::ZERO).expect("a turn");
    let mut controllers = [0, 1].map(|_| client(address, &authority, Some(&of_controller)));
    for controller in &mut controllers {
        controller.converse(&mut connections);
    }
    // One without a certificate gets no session, and does not disturb the others.
    let mut stranger = client(address, &authority, None);
    let found = fault(&mut connections, &mut stranger);
    assert_eq!(found, ConnectionFault::Tls(rustls::Error::NoCertificatesPresented));
    for controller in &mut controllers {
        controller.write(&Message::BarrierRequest);
        assert_eq!(controller.read(&mut connections), Message::BarrierReply);
    }
}

#[test]
fn a_controller_of_another_authority_is_refused() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (of_switch, of_stranger) = (authority.certify(), other.certify());
    let (listener, address) = listen();
    let endpoint = Endpoint { transport: Transport::Tls, address };
    let mut connections = connections(endpoint, Some(authority.certificates(&of_switch)));
    let stream = accept(&mut connections, &listener);
    let mut stranger = server(stream, &authority, &of_stranger);
    let found = fault(&mut connections, &mut stranger);
    let ConnectionFault::Tls(rustls::Error::InvalidCertificate(why)) = &found else { panic!("{found:?}") };
    assert!(matches!(why, CertificateError::UnknownIssuer | CertificateError::BadSignature), "{why:?}");
    assert!(found.to_string().starts_with("TLS failed: invalid peer certificate"), "{found}");
}

/// A controller that speaks plain OpenFlow, and a switch without certificates.
#[test]
fn nothing_is_said_without_tls() {
    let authority = Authority::new();
    let (listener, address) = listen();
    let endpoint = Endpoint { transport: Transport::Tls, address };
    let mut without = connections(endpoint, None);
    without.turn(None, Duration::ZERO).expect("a turn");
    let status = without.statuses().next().expect("a status");
    assert_eq!(status.fault, Some(ConnectionFault::NoCertificate));
    let told = status.fault.as_ref().expect("a fault").to_string();
    assert!(told.contains("--controller-certificate"), "it says what to do: {told}");
    let mut with = connections(endpoint, Some(authority.certificates(&authority.certify())));
    let mut stream = accept(&mut with, &listener);
    stream.set_nonblocking(false).expect("a stream");
    let hello = Message::Hello(Hello { versions: Some(1 << VERSION) });
    stream.write_all(&hello.encode(1).expect("a short message")).expect("room");
    let start = Instant::now();
    while with.statuses().next().is_some_and(|status| status.fault.is_none()) {
        assert!(start.elapsed() < TIMEOUT, "nothing ends");
        with.turn(None, Duration::from_millis(1)).expect("a turn");
    }
    let found = with.statuses().next().and_then(|status| status.fault);
    assert!(matches!(found, Some(ConnectionFault::Tls(rustls::Error::InvalidMessage(_)))), "{found:?}");
    let mut said = Vec::new();
    stream.read_to_end(&mut said).expect("the end");
    assert_eq!(said[..2], [22, 3], "only a record of the handshake");
}

#[test]
fn certificates_are_checked() {
    let authority = Authority::new();
    let (pair, other) = (authority.certify(), authority.certify());
    let (certificate, key) = (pair.certificate.pem(), pair.key.serialize_pem());
    let from = |certificate: &str, key: &str, authority: &str| {
        Certificates::from_pem(certificate.as_bytes(), key.as_bytes(), authority.as_bytes()).err()
    };
    let trusted = authority.0.pem();
    assert!(from(&certificate, &key, &trusted).is_none());
    assert!(matches!(from("", &key, &trusted), Some(CertificatesError::Pair(_))));
    assert!(matches!(from(&certificate, "", &trusted), Some(CertificatesError::Key(_))));
    assert!(matches!(from(&certificate, &key, ""), Some(CertificatesError::NoAuthority)));
    let broken = trusted.replace("END CERTIFICATE", "END");
    assert!(matches!(from(&certificate, &key, &broken), Some(CertificatesError::Authority(_))));
    let of_other = other.key.serialize_pem();
    assert!(matches!(from(&certificate, &of_other, &trusted), Some(CertificatesError::Pair(_))));
}
