//! Makes a port's drivers from the descriptors of its device.

use crate::error::{OperationError, PortError};
use model::{PortDriver, SocketRole, Tunnel, TunnelKind, TunnelMtu};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use switch::Driver;
use switch::driver::{
    AfPacket, AfXdp, Encapsulation, MemifPort, MemifSettings, Null, OverlayPort, OverlaySettings, PcapPort,
    PortSlot, Tap, VhostUser, VhostUserSettings,
};

/// The drivers of a port: one for each queue of its device, but no more than switch threads. `descriptors` are those of its
/// device or of its files, in the order of its definition; a port that needs some and gets none is down. `instead`: why the
/// descriptors are those of `af_packet`, although the port is one of `af_xdp`. Returns `None` for a pipe or a box, which the
/// network connects itself.
pub(crate) fn adopt(
    driver: &PortDriver,
    descriptors: Vec<OwnedFd>,
    instead: Option<String>,
    threads: usize,
) -> Result<Option<Vec<Box<dyn Driver>>>, OperationError> {
    match driver {
        PortDriver::Memif { role, id, secret, queues, .. } => {
            let secret = secret.iter().flat_map(|secret| secret.as_str().bytes()).collect();
            let queues = queues.map_or(threads as u16, |queues| u16::try_from(queues).unwrap_or(u16::MAX));
            let settings = MemifSettings { id: *id, secret, queues, ..MemifSettings::default() };
            let port = match (role, descriptors.into_iter().next()) {
                (_, None) => MemifPort::unconnected(settings),
                (SocketRole::Server, Some(listener)) => MemifPort::server(listener, settings),
                (SocketRole::Client, Some(socket)) => MemifPort::client(socket, settings),
            };
            let ports = port.and_then(|port| port.divide(threads.min(queues.into())));
            return Ok(Some(boxed(ports.map_err(|error| PortError::Device(error.into()))?)));
        }
        PortDriver::VhostUser { role, queues, memory, .. }
            if !descriptors.is_empty() || *role == SocketRole::Client =>
        {
            let pairs = queues.map_or(threads, |queues| queues as usize);
            let defaults = VhostUserSettings::default();
            let memory = memory.map_or(defaults.memory, |memory| memory.0);
            let settings = VhostUserSettings { pairs, drivers: threads, memory };
            let port = match (role, descriptors.into_iter().next()) {
                (_, None) => VhostUser::unconnected_with(settings),
                (SocketRole::Server, Some(listener)) => VhostUser::server_with(listener, settings),
                (SocketRole::Client, Some(socket)) => VhostUser::client_with(socket, settings),
            };
            return Ok(Some(boxed(port.map_err(|error| PortError::Device(error.into()))?.divide())));
        }
        _ if descriptors.is_empty() => {}
        PortDriver::Tap { queues, .. } => return taps(descriptors, threads, *queues).map(Some),
        PortDriver::AfPacket { .. } => return packet_sockets(descriptors, threads, None).map(Some),
        PortDriver::AfXdp { .. } => match instead {
            Some(why) => return packet_sockets(descriptors, threads, Some(why)).map(Some),
            None => {
                let ports = AfXdp::divide_descriptors(descriptors, threads)
                    .map_err(|error| PortError::Device(io::Error::from(error).into()))?;
                return Ok(Some(boxed(ports)));
            }
        },
        _ => {}
    }
    Ok(one_driver(driver, descriptors)?.map(|driver| vec![driver]))
}

/// Queues of a tap device, one for each thread at most. The kernel removes the others when their descriptors are closed.
fn taps(
    mut descriptors: Vec<OwnedFd>,
    threads: usize,
    queues: Option<u32>,
) -> Result<Vec<Box<dyn Driver>>, OperationError> {
    descriptors.truncate(queues.map_or(threads, |queues| threads.min(queues as usize)).max(1));
    let ports = descriptors.into_iter().map(Tap::from_descriptor).collect::<io::Result<Vec<_>>>();
    Ok(boxed(ports.map_err(|error| PortError::Device(error.into()))?))
}

/// Packet sockets that share the frames of an interface, one for each thread at most.
fn packet_sockets(
    mut descriptors: Vec<OwnedFd>,
    threads: usize,
    instead: Option<String>,
) -> Result<Vec<Box<dyn Driver>>, OperationError> {
    descriptors.truncate(threads);
    let ports = AfPacket::from_descriptors(descriptors).map_err(|error| PortError::Device(error.into()))?;
    let named = |port: AfPacket| match &instead {
        Some(why) => port.instead(why.clone()),
        None => port,
    };
    Ok(boxed(ports.into_iter().map(named)))
}

fn boxed<D: Driver + 'static>(drivers: impl IntoIterator<Item = D>) -> Vec<Box<dyn Driver>> {
    drivers.into_iter().map(|driver| Box::new(driver) as Box<dyn Driver>).collect()
}

/// The driver of a port whose device has one queue.
fn one_driver(
    driver: &PortDriver,
    descriptors: Vec<OwnedFd>,
) -> Result<Option<Box<dyn Driver>>, OperationError> {
    let has_none = descriptors.is_empty();
    let mut descriptors = descriptors.into_iter();
    Ok(Some(match driver {
        PortDriver::Null {} => Box::new(Null),
        PortDriver::Pipe { .. } | PortDriver::Box { .. } => return Ok(None),
        _ if has_none => placeholder(),
        // They are above.
        PortDriver::Tap { .. }
        | PortDriver::VhostUser { .. }
        | PortDriver::Memif { .. }
        | PortDriver::AfPacket { .. }
        | PortDriver::AfXdp { .. } => placeholder(),
        PortDriver::Vxlan { .. } | PortDriver::Geneve { .. } => {
            let tunnel = driver.tunnel().ok_or(PortError::NoDevice)?;
            let port = OverlayPort::from_descriptor(next(&mut descriptors)?, overlay_settings(&tunnel));
            Box::new(port.map_err(|error| PortError::Device(error.into()))?)
        }
        PortDriver::Pcap { read, write, repeat, rate } => {
            let read = read.as_ref().map(|_| next(&mut descriptors)).transpose()?.map(File::from);
            let write = write.as_ref().map(|_| next(&mut descriptors)).transpose()?.map(File::from);
            let port = PcapPort::from_files(read, write, *repeat, *rate);
            Box::new(port.map_err(|error| PortError::Device(error.into()))?)
        }
    }))
}

fn next(descriptors: &mut impl Iterator<Item = OwnedFd>) -> Result<OwnedFd, PortError> {
    descriptors.next().ok_or(PortError::NoDevice)
}

/// The settings of a tunnel's driver.
fn overlay_settings(tunnel: &Tunnel) -> OverlaySettings {
    OverlaySettings {
        encapsulation: match tunnel.kind {
            TunnelKind::Vxlan => Encapsulation::Vxlan,
            TunnelKind::Geneve => Encapsulation::Geneve,
        },
        udp_port: tunnel.udp_port,
        vni: tunnel.vni.into(),
        mtu: tunnel.mtu.map(TunnelMtu::bytes),
    }
}

/// A placeholder for a device that cannot be opened now: receives nothing, and drops what is sent.
pub(crate) fn placeholder() -> Box<dyn Driver> {
    Box::new(PortSlot::<()>::default())
}
