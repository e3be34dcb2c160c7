//! The addresses in the arguments of a socket.

use core::net::Ipv4Addr;

use alloc::string::String;
use alloc::vec;

use element::arguments::{FromArgument, Raw, TcpPort, UdpPort};
use element::{ArgumentGroup, Message, Setup, SetupError, SocketAddress};

/// The addresses of a socket.
#[derive(ArgumentGroup)]
pub(super) struct AddressArguments {
    /// The address; for a Unix socket, the same as FILENAME.
    #[arg(position)]
    addr: Option<Raw>,
    /// The TCP or UDP port; for a Unix socket, the same as LOCAL_FILENAME.
    #[arg(position)]
    port: Option<Raw>,
    /// A client's own address.
    #[arg(position)]
    local_addr: Option<Ipv4Addr>,
    /// A client's own port.
    #[arg(position)]
    local_port: Option<Raw>,
    /// The name of the Unix socket.
    filename: Option<String>,
    /// The name of a client's own Unix socket.
    local_filename: Option<String>,
}

/// The address to bind or connect to, and a client's own address.
pub(super) type Addresses = (SocketAddress, Option<SocketAddress>);

/// The addresses of a TCP or UDP socket.
pub(super) fn internet_addresses(
    tcp: bool,
    args: &AddressArguments,
    setup: &Setup,
) -> Result<Addresses, SetupError> {
    let missing = |keyword| SetupError { messages: vec![Message::Missing { keyword }] };
    let wrong = |keyword: &'static str| move |problem| SetupError::argument(keyword, problem);
    let port = |keyword, text: &str| match tcp {
        true => TcpPort::from_argument(text, setup).map(|port| port.0).map_err(wrong(keyword)),
        false => UdpPort::from_argument(text, setup).map(|port| port.0).map_err(wrong(keyword)),
    };
    let socket_address = |address, port| match tcp {
        true => SocketAddress::Tcp(address, port),
        false => SocketAddress::Udp(address, port),
    };
    let address = args.addr.as_ref().ok_or_else(|| missing("ADDR"))?;
    let address = Ipv4Addr::from_argument(&address.0, setup).map_err(wrong("ADDR"))?;
    let number = port("PORT", &args.port.as_ref().ok_or_else(|| missing("PORT"))?.0)?;
    let local = match (args.local_addr, &args.local_port) {
        (None, None) => None,
        (address, text) => {
            let number = text.as_ref().map_or(Ok(0), |text| port("LOCAL_PORT", &text.0))?;
            Some(socket_address(address.unwrap_or(Ipv4Addr::UNSPECIFIED), number))
        }
    };
    Ok((socket_address(address, number), local))
}

/// The addresses of a Unix stream or datagram socket.
pub(super) fn unix_addresses(stream: bool, args: &AddressArguments) -> Result<Addresses, SetupError> {
    let text = |given: &Option<String>, raw: &Option<Raw>| {
        given.clone().or_else(|| raw.as_ref().map(|raw| element::text::unquote(&raw.0)))
    };
    let socket_address = |name: String, which: &str| match name.len() {
        length if length > SocketAddress::MAX_PATH => {
            Err(SetupError::new(format_args!("{which} filename '{name}' too long")))
        }
        _ if stream => Ok(SocketAddress::Unix(name)),
        _ => Ok(SocketAddress::UnixDatagram(name)),
    };
    let missing = || SetupError { messages: vec![Message::Missing { keyword: "FILENAME" }] };
    let name = text(&args.filename, &args.addr).ok_or_else(missing)?;
    let local =
        text(&args.local_filename, &args.port).map(|name| socket_address(name, "local")).transpose()?;
    Ok((socket_address(name, "remote")?, local))
}
