//! Virtual machines at the switches of a daemon, whose front ends are in the test: the launcher, the confined fabric, and
//! reconnections of either side.

#[allow(dead_code, unreachable_pub, reason = "the tests of the driver use more of it")]
#[path = "../../switch/tests/vhost_user/front_end.rs"]
mod front_end;
mod support;

use front_end::{FrontEnd, RECEIVE, SEVERAL_QUEUES, SIZE, TRANSMIT, USUAL};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};
use support::planes::{Planes, until};
use support::{TIMEOUT, capture};

/// Does the handshake, as a virtual machine does: it waits for each answer.
fn shake_hands(front_end: &FrontEnd) {
    for message in front_end.handshake() {
        front_end.send(&message);
        if matches!(message.0, 1 | 15) {
            until("an answer", || front_end.answer().is_some_and(|(request, _)| request == message.0));
        }
    }
}

/// A machine that connects to a port that listens, with buffers for frames.
fn connect(planes: &Planes, socket: &str) -> FrontEnd {
    let stream = UnixStream::connect(planes.path(socket)).expect("the port listens");
    let mut front_end = FrontEnd::new(stream, USUAL);
    shake_hands(&front_end);
    add_buffers(&mut front_end);
    front_end
}

fn add_buffers(front_end: &mut FrontEnd) {
    while front_end.available[RECEIVE].wrapping_sub(front_end.used[RECEIVE]) < SIZE / 2 {
        front_end.add_buffer(2060);
    }
}

/// A frame between two stations.
fn frame(to: u8, from: u8) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x88, 0xb5]);
    frame
}

/// Sends a frame, and wakes the switch.
fn transmit(front_end: &mut FrontEnd, frame: &[u8]) {
    front_end.transmit(frame);
    rustix::io::write(&front_end.kicks[TRANSMIT], &1u64.to_ne_bytes()).expect("a kick");
}

/// Sends a frame from one machine until the other one has it.
fn pass(from: &mut FrontEnd, to: &mut FrontEnd, frame: &[u8]) {
    let end = Instant::now() + TIMEOUT;
    loop {
        add_buffers(to);
        transmit(from, frame);
        std::thread::sleep(Duration::from_millis(10));
        from.take_used(TRANSMIT);
        if to.received().iter().any(|received| received == frame) {
            return;
        }
        assert!(Instant::now() < end, "the frame did not arrive");
    }
}

/// The port's JSON.
fn port(planes: &Planes, name: &str) -> serde_json::Value {
    let ports = planes.json(&["port", "ls", "lan"]);
    let found = ports.as_array().into_iter().flatten().find(|port| port["name"] == name);
    found.expect("the port").clone()
}

fn add(planes: &Planes, name: &str, options: &[&str]) {
    let path = planes.path(name);
    let arguments = ["port", "add", "lan", name, "--driver", "vhost-user", "--path", &path];
    planes.check(&[&arguments, options].concat(), 0, &[]);
}

#[test]
fn virtual_machines_are_members_of_a_switch() {
    let planes = Planes::new("machines");
    let mut daemon = planes.start();
    planes.check(&["switch", "create", "lan"], 0, &[]);
    planes.check(&["port", "add", "lan", "x", "--driver", "vhost_user"], 2, &["--path"]);
    planes.check(&["port", "add", "lan", "x", "--driver", "null", "--path", "/x"], 2, &["has no \"path\""]);
    for name in ["one", "two"] {
        add(&planes, name, &[]);
        assert_eq!(port(&planes, name)["link"], "waiting");
    }
    planes.check(&["port", "ls", "lan"], 0, &["(waiting)", "lan/one: no front end is connected\n"]);
    let path = planes.path("one");
    let arguments = ["port", "add", "lan", "three", "--driver", "vhost_user", "--path", &path];
    planes.check(&arguments, 5, &["has this device, file, socket or tunnel already"]);

    let (mut one, mut two) = (connect(&planes, "one"), connect(&planes, "two"));
    until("the rings", || port(&planes, "one")["link"] == "up" && port(&planes, "two")["link"] == "up");
    pass(&mut one, &mut two, &frame(2, 1));
    pass(&mut two, &mut one, &frame(1, 2));

    // A machine that truncates its memory under traffic loses its connection. The fabric and the others go on.
    let fabric = planes.fabric();
    one.memory.set_len(0).expect("a truncation");
    transmit(&mut two, &frame(1, 2));
    rustix::io::write(&one.kicks[TRANSMIT], &1u64.to_ne_bytes()).expect("a kick");
    until("the end of the connection", || one.is_closed());
    let mut one = connect(&planes, "one");
    pass(&mut one, &mut two, &frame(2, 1));
    assert_eq!(planes.fabric(), fabric, "the fabric is the same");

    // A machine that vanishes, and comes back.
    drop(one);
    until("the end of the link", || port(&planes, "one")["link"] == "waiting");
    let mut one = connect(&planes, "one");
    pass(&mut one, &mut two, &frame(2, 1));

    // The fabric vanishes: the guests go on at its successor.
    let pid = Pid::from_raw(fabric.expect("a fabric").cast_signed()).expect("a process");
    kill_process(pid, Signal::KILL).expect("a signal");
    until("the end of the connections", || one.is_closed() && two.is_closed());
    let again = |end: FrontEnd, name: &str| {
        let mut stream = None;
        until("another fabric", || {
            stream = UnixStream::connect(planes.path(name)).ok();
            stream.is_some()
        });
        let end = end.reconnected(stream.expect("a connection"));
        shake_hands(&end);
        end
    };
    (one, two) = (again(one, "one"), again(two, "two"));
    pass(&mut one, &mut two, &frame(2, 1));

    // A machine with more memory than a port takes is refused, and the port says so.
    add(&planes, "small", &["--memory", "1M"]);
    let small = UnixStream::connect(planes.path("small")).expect("the port listens");
    let small = FrontEnd::new(small, USUAL);
    small.handshake().iter().for_each(|message| small.send(message));
    until("a fault", || {
        let fault = port(&planes, "small")["fault"].clone();
        fault.as_str().is_some_and(|why| why.contains("the port takes 1: add it with another --memory"))
    });

    // A port that is removed leaves no socket.
    planes.check(&["port", "rm", "lan", "one"], 0, &[]);
    assert!(!std::path::Path::new(&planes.path("one")).exists());
    planes.check(&["daemon", "stop", "--all"], 0, &[]);
    assert!(daemon.wait().expect("an end").success());
}

#[test]
fn a_port_of_a_virtual_machine_waits_for_it() {
    let planes = Planes::new("machine-client");
    let mut daemon = planes.start();
    planes.check(&["switch", "create", "lan"], 0, &[]);
    add(&planes, "vm", &["--role", "client"]);
    add(&planes, "two", &[]);
    until("a fault", || {
        port(&planes, "vm")["fault"].as_str().is_some_and(|text| text.contains("can't connect to the socket"))
    });
    let listener = UnixListener::bind(planes.path("vm")).expect("a socket");
    listener.set_nonblocking(true).expect("a socket");
    let accept = || {
        let mut stream = None;
        until("a connection", || {
            stream = listener.accept().ok();
            stream.is_some()
        });
        stream.expect("a connection").0
    };
    let mut two = connect(&planes, "two");
    let mut vm = FrontEnd::new(accept(), USUAL);
    for _ in 0..3 {
        shake_hands(&vm);
        add_buffers(&mut vm);
        until("the rings", || port(&planes, "vm")["link"] == "up");
        assert_eq!(port(&planes, "vm")["fault"], serde_json::Value::Null);
        pass(&mut vm, &mut two, &frame(2, 1));
        pass(&mut two, &mut vm, &frame(1, 2));
        // The machine is killed, and started again.
        vm.socket.shutdown(std::net::Shutdown::Both).expect("the end");
        let stream = accept();
        vm = vm.reconnected(stream);
    }
    // A machine with a ring outside its memory is connected, and one that breaks the rules loses the port, which says why until
    // another one connects.
    let queue = TRANSMIT as u64;
    two.send(&(9, vec![queue, u64::MAX - 15, u64::MAX - 15, u64::MAX - 15, 0], vec![]));
    let why = "queue 1 of the front end is outside the memory that it shares, or not aligned";
    until("the reason", || port(&planes, "two")["awaits"] == why);
    assert_eq!(port(&planes, "two")["link"], "connected");
    drop(two);
    let two = connect(&planes, "two");
    two.publish(TRANSMIT, SIZE + 1);
    rustix::io::write(&two.kicks[TRANSMIT], &1u64.to_ne_bytes()).expect("a kick");
    let why = "no front end is connected: the index of a ring is invalid";
    until("the reason", || {
        let found = port(&planes, "two");
        found["awaits"] == why && found["link"] == "waiting" && found["fault"] == serde_json::Value::Null
    });
    let _two = connect(&planes, "two");
    until("another machine", || port(&planes, "two")["link"] == "up");
    assert_eq!(port(&planes, "two")["awaits"], serde_json::Value::Null);
    planes.check(&["daemon", "stop", "--all"], 0, &[]);
    assert!(daemon.wait().expect("an end").success());
}

/// A stack makes the ports of its machines, and its end disconnects them.
#[test]
fn virtual_machines_are_members_of_a_stack() {
    let planes = Planes::new("machine-stack");
    let mut daemon = planes.start();
    let port_of = |name: &str, driver: &str| {
        format!("{name} = {{ driver = \"{driver}\", path = \"{}\" }}\n", planes.path(name))
    };
    let (vm0, vm1) = (port_of("vm0", "vhost_user"), port_of("vm1", "vhost-user"));
    let stack = planes.file("site.toml", &format!("name = \"site\"\n[switches.lan.ports]\n{vm0}{vm1}"));
    planes.check(&["up", &stack], 0, &[]);
    let [mut vm0, mut vm1] = ["vm0", "vm1"].map(|name| connect(&planes, name));
    until("the rings", || port(&planes, "vm0")["link"] == "up" && port(&planes, "vm1")["link"] == "up");
    let captured = capture(planes.path("socket").as_ref(), "lan/vm1", 1);
    pass(&mut vm0, &mut vm1, &frame(2, 1));
    assert_eq!(captured(), [frame(2, 1)]);
    pass(&mut vm1, &mut vm0, &frame(1, 2));
    // The stack as it is has the driver's own name.
    let exported = planes.check(&["export", "site"], 0, &["driver = \"vhost_user\""]);
    assert!(!exported.contains("vhost-user"), "{exported}");
    planes.check(&["up", &stack], 0, &[]);
    assert_eq!(port(&planes, "vm0")["link"], "up", "nothing was made again");
    planes.check(&["down", "site"], 0, &[]);
    until("the end of the connections", || vm0.is_closed() && vm1.is_closed());
    planes.check(&["daemon", "stop", "--all"], 0, &[]);
    assert!(daemon.wait().expect("an end").success());
}

/// A machine with two queue pairs, with buffers for frames in both.
fn connect_with_two_pairs(planes: &Planes, socket: &str) -> FrontEnd {
    let stream = UnixStream::connect(planes.path(socket)).expect("the port listens");
    let mut front_end = FrontEnd::new(stream, USUAL | SEVERAL_QUEUES);
    front_end.pairs = 2;
    shake_hands(&front_end);
    (0..2 * SIZE / 2).for_each(|number| front_end.add_buffer_to(usize::from(number % 2), 2060));
    front_end
}

/// With several switch threads, each serves a queue pair of a machine.
#[test]
fn queue_pairs_of_a_machine_are_in_all_threads() {
    const FLOWS: u16 = 30;
    let planes = Planes::new("machine-queues");
    let mut daemon = planes.start_with(&["--switch-threads", "2"]);
    planes.check(&["switch", "create", "lan"], 0, &[]);
    add(&planes, "one", &[]);
    add(&planes, "two", &["--queues", "3"]);
    let flow = |number: u16| {
        let mut frame = frame(2, 1);
        frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17]);
        frame[26..36].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2, 0x10, number as u8]);
        frame[39] = 26;
        frame
    };
    let mut expected: Vec<Vec<u8>> = (0..FLOWS).map(flow).collect();
    expected.sort();
    // The machines come, go, and come back.
    for round in 1..=2u64 {
        let [mut one, mut two] = ["one", "two"].map(|name| connect_with_two_pairs(&planes, name));
        let is_ready = |name: &str| port(&planes, name)["link"] == "up" && port(&planes, name)["queues"] == 2;
        until("the rings", || is_ready("one") && is_ready("two"));
        (0..FLOWS).for_each(|number| one.transmit_by(usize::from(number % 2), &flow(number)));
        for queue in [TRANSMIT, 2 + TRANSMIT] {
            rustix::io::write(&one.kicks[queue], &1u64.to_ne_bytes()).expect("a kick");
        }
        let mut came = [Vec::new(), Vec::new()];
        until("all frames", || {
            for (pair, came) in came.iter_mut().enumerate() {
                came.extend(two.received_by(pair).into_iter().map(|(_, frame)| frame));
            }
            came.concat().len() == usize::from(FLOWS)
        });
        assert!(came.iter().all(|came| came.len() > 3), "{:?}", came.map(|came| came.len()));
        let mut came = came.concat();
        came.sort();
        assert_eq!(came, expected);
        let [one_port, two_port] = ["one", "two"].map(|name| port(&planes, name));
        let all = round * u64::from(FLOWS);
        assert_eq!(one_port["traffic"]["received_packets"], all);
        assert_eq!(two_port["traffic"]["sent_packets"], all);
        assert_eq!([&one_port["drops"], &two_port["drops"]], [&serde_json::json!({}); 2]);
        drop((one, two));
        until("the end", || {
            port(&planes, "one")["link"] == "waiting" && port(&planes, "two")["link"] == "waiting"
        });
        assert_eq!(port(&planes, "one")["queues"], serde_json::Value::Null);
    }
    planes.check(&["daemon", "stop", "--all"], 0, &[]);
    assert!(daemon.wait().expect("an end").success());
}
