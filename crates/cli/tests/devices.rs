//! Kernel interfaces and tunnels, in a network namespace of the test, which needs root, `unshare` and `ip`, and else prints a note
//! and skips; and captures in their place.

use std::process::{Command, Stdio};
use test_support::{Capability, require, skip};

/// Runs a shell script in a new network namespace; `$CLICK` is the program. `None` if that is not possible.
fn in_namespace(script: &str) -> Option<String> {
    let own = |command: &str| {
        let mut command = Command::new(command);
        command.stdin(Stdio::null());
        command
    };
    if !require(Capability::Root) {
        return None;
    }
    let click = format!("timeout 20 {} click", env!("CARGO_BIN_EXE_clickbox"));
    let output =
        own("unshare").args(["-n", "bash", "-c", script]).env("CLICK", click).output().expect("a shell");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(text + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn frames_cross_a_pair_of_interfaces_with_their_tags() {
    let found = in_namespace(
        r#"
        OUT=$(mktemp)
        ip link add one type veth peer name two && ip link set one up && ip link set two up
        $CLICK -e 'from :: FromDevice(two, PROMISC true) -> Classifier(12/8100 14/0007 16/88b5)
            -> c :: Counter(COUNT_CALL 5 stop) -> Discard; DriverManager(wait 10s, stop)' -h c.count -h c.byte_count >$OUT &
        sleep 1
        $CLICK -e 'RatedSource(DATA \<ffffffffffff 020000000001 8100 0007 88b5 0102030405060708>, RATE 100, LIMIT 5)
            -> Queue -> to :: ToDevice(one) -> sent :: Counter(COUNT_CALL 5 stop) -> Discard; DriverManager(wait 10s, stop)' -h sent.count
        wait; cat $OUT; rm $OUT
        "#,
    );
    if let Some(found) = found {
        assert_eq!(found, "5\nc.count:\n5\n\nc.byte_count:\n130\n\n");
    }
}

#[test]
fn shards_share_an_interface() {
    if !require(Capability::Python) {
        return;
    }
    let found = in_namespace(
        r#"
        ip link add one type veth peer name two && ip link set one up && ip link set two up
        SOCKET=$(mktemp -u)
        ${CLICK%click} run --shards 2 --quiet -e "ControlSocket(unix, $SOCKET);
            from :: FromDevice(two, PROMISC true)
            -> k :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800 23/11, -);
            k[0] -> requests :: Counter -> Discard; k[1] -> replies :: Counter -> Discard;
            k[2] -> c :: Counter -> Discard; k[3] -> Discard" &
        until [[ -S $SOCKET ]]; do sleep 0.05; done
        python3 - $SOCKET <<'PYTHON'
import socket, struct, sys, time
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); raw.bind(("one", 0))
ethernet = bytes.fromhex("020000000002020000000001")
for n in range(500):
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28, n, 0, 64, 17, 0, bytes([10, 0, n >> 8, n & 255]), bytes([9, 9, 9, 9]))
    raw.send(ethernet + b"\x08\x00" + ip + struct.pack(">HHHH", 5000, 53, 8, 0) + bytes(18))
for operation in [1, 2] * 5:
    raw.send(ethernet + bytes.fromhex("08060001080006040000")[:-1] + bytes([operation]) + bytes(38))
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); f = s.makefile("rw", newline="")
f.readline()
def read(path):
    f.write(f"READ {path}\n"); f.flush(); f.readline()
    return f.read(int(f.readline().split()[1]))
end = time.time() + 10
while read("c.count") != "500" and time.time() < end: pass
for path in ["c.count", "requests.count", "shard0/requests.count", "replies.count", "from.kernel_drops"]: print(path, read(path))
shares = [int(read(f"shard{n}/c.count")) for n in (0, 1)]
print("spread", all(shares) and sum(shares) == 500)
f.write("WRITE stop\n"); f.flush(); f.readline()
PYTHON
        wait
        # A generator works in the first shard only, but ends the run in all.
        ${CLICK%click} run --shards 2 --quiet -e "InfiniteSource(LIMIT 5, STOP true) -> Discard; FromDevice(two) -> Discard" && echo ended
        "#,
    );
    if let Some(found) = found {
        let expected = "c.count 500\nrequests.count 5\nshard0/requests.count 5\nreplies.count 10\nfrom.kernel_drops 0\nspread True\nended\n";
        assert_eq!(found, expected);
    }
}

#[test]
fn swaps_neither_lose_nor_duplicate_frames() {
    let found = in_namespace(
        r#"
        ip link set lo up
        ip link add one type veth peer name two && ip link set one up && ip link set two up
        receive='control :: ControlSocket(TCP, 7777, RETRIES 1, RETRY_WARNINGS false);
            from :: FromDevice(two, PROMISC true) -> k :: Classifier(12/88b5) -> c :: Counter -> Discard'
        send='control :: ControlSocket(TCP, 7778, RETRIES 1, RETRY_WARNINGS false);
            s :: RatedSource(DATA \<ffffffffffff 020000000001 88b5 0102030405060708>, RATE 5000, LIMIT 2500)
            -> q :: Queue(5000) -> to :: ToDevice(one) -> sent :: Counter -> Discard'
        receive=${receive//$'\n'/} send=${send//$'\n'/}
        $CLICK -R -e "$receive" & receiver=$!
        until exec 3<>/dev/tcp/127.0.0.1/7777; do sleep 0.05; done 2>/dev/null
        read -r -u 3
        $CLICK -R -e "$send" & sender=$!
        until exec 4<>/dev/tcp/127.0.0.1/7778; do sleep 0.05; done 2>/dev/null
        read -r -u 4
        # The sender's new configurations have no source: what is in the queue goes on.
        ask() { printf '%s\r\n' "$2" >&$1; read -r -u $1 answer; [[ $answer == 200* ]] || echo "$2: $answer"; }
        value() { ask $1 "READ $2"; read -r -u $1 size; read -r -N "${size//[^0-9]/}" -u $1 got; }
        for swap in 1 2 3 4 5 6 7 8 9 10; do
            ask 3 "WRITE hotconfig $receive"
            # A configuration that is refused leaves the devices alone.
            printf '%s\r\n' "WRITE hotconfig FromDevice(nothing0) -> Discard" >&3; read -r -u 3 answer
            while [[ $answer == 520-* ]]; do read -r -u 3 answer; done
            sleep 0.05
        done
        value 4 s.count; was=-1
        until [[ $got == 2500 ]]; do value 4 s.count; sleep 0.05; done
        until value 4 q.length; [[ $got == 0 ]]; do sleep 0.05; done
        ask 4 "WRITE hotconfig ${send//LIMIT 2500/LIMIT 0}"
        value 4 sent.count; echo "sent $got"
        until value 3 c.count; [[ $got == $was ]]; do was=$got; sleep 0.2; done
        echo "seen $got"
        ask 3 "WRITE stop"; ask 4 "WRITE stop"; wait $receiver $sender
        "#,
    );
    if let Some(found) = found {
        assert_eq!(found, "sent 2500\nseen 2500\n");
    }
}

#[test]
fn tunnels_exchange_packets_with_the_kernel() {
    let found = in_namespace(
        r#"
        $CLICK -e 'ICMPPingSource(10.9.0.2, 10.9.0.1, LIMIT 1, INTERVAL 0.01) -> tun :: KernelTun(10.9.0.1/24, DEVNAME mytun)
            -> IPClassifier(icmp type echo-reply) -> c :: Counter(COUNT_CALL 1 stop) -> Discard;
            DriverManager(wait 10s, stop)' -h c.count -h tun.dev_name
        $CLICK -e 'tap :: KernelTap(10.9.1.1/24, ETHER 02:00:00:00:00:09) -> ARPResponder(10.9.1.2 02:00:00:00:00:08)
            -> c :: Counter(COUNT_CALL 1 stop) -> tap; DriverManager(wait 10s, stop)' -h c.count &
        for try in 1 2 3 4 5; do sleep 0.3; echo x > /dev/udp/10.9.1.2/9; done 2>/dev/null
        wait
        $CLICK -e 'from :: FromHost(fake0, 10.9.2.1/24, ETHER 02:00:00:00:00:07) -> ARPResponder(10.9.2.2 02:00:00:00:00:06)
            -> c :: Counter(COUNT_CALL 1 stop) -> to :: ToHost(fake0); DriverManager(wait 10s, stop)' -h c.count -h to.drops &
        for try in 1 2 3 4 5; do sleep 0.3; echo x > /dev/udp/10.9.2.2/9; done 2>/dev/null
        wait
        "#,
    );
    if let Some(found) = found {
        assert_eq!(found, "c.count:\n1\n\ntun.dev_name:\nmytun\n\n1\nc.count:\n1\n\nto.drops:\n0\n\n");
    }
}

#[test]
fn a_packet_above_the_mtu_is_explained() {
    let found = in_namespace(
        r#"
        ip link add one type veth peer name two && ip link set one up && ip link set two up
        $CLICK -e 'InfiniteSource(LENGTH 1600, LIMIT 1) -> Queue -> to :: ToDevice(one) -> Discard;
            to[1] -> failed :: Counter(COUNT_CALL 1 stop) -> Discard; DriverManager(wait 10s, stop)' -h failed.count
        "#,
    );
    if let Some(found) = found {
        let text = "ToDevice(one): a packet is longer than the MTU: give the interface a greater one";
        assert!(found.contains(text) && found.lines().any(|line| line == "1"), "{found}");
    }
}

/// After a swap, frames come from the interface that took the place of a removed one, and go to it.
#[test]
fn a_swap_finds_an_interface_that_is_back() {
    for method in ["LINUX", "XDP"] {
        swap_with(method);
    }
}

fn swap_with(method: &str) {
    let script = r#"
        ip link set lo up
        pair() { ip link add one type veth peer name two && ip link set one up && ip link set two up; }
        config='control :: ControlSocket(TCP, 7777, RETRIES 1, RETRY_WARNINGS false);
            from :: FromDevice(two, PROMISC true, METHOD $METHOD) -> k :: Classifier(12/88b5) -> c :: Counter -> Discard;
            s :: RatedSource(DATA \<ffffffffffff 020000000001 88b5 0102030405060708>, RATE 200) -> q :: Queue -> ToDevice(one, METHOD $METHOD)'
        config=${config//$'\n'/}; config=${config//\$METHOD/$METHOD}
        pair; $CLICK -R -e "$config" & click=$!
        until exec 3<>/dev/tcp/127.0.0.1/7777; do sleep 0.05; done 2>/dev/null
        read -r -u 3
        ask() { printf '%s\r\n' "$1" >&3; read -r -u 3 answer; [[ $answer == 200* ]] || echo "$1: $answer"; }
        value() { ask "READ $1"; read -r -u 3 size; read -r -N "${size//[^0-9]/}" -u 3 got; }
        until value c.count; [[ $got -gt 10 ]]; do sleep 0.05; done
        ip link del one; sleep 0.3; pair
        ask "WRITE hotconfig $config"; value c.count; before=$got
        until value c.count; [[ $got -gt $((before + 10)) ]]; do sleep 0.05; done
        ask "WRITE stop"; wait $click; echo "seen again"
        "#;
    if let Some(found) = in_namespace(&format!("METHOD={method}\n{script}")) {
        for device in ["FromDevice(two)", "ToDevice(one)"] {
            let (start, end) = (
                format!("{device}: the interface "),
                "load the configuration again when the interface is back",
            );
            assert!(found.lines().any(|line| line.starts_with(&start) && line.ends_with(end)), "{found}");
        }
        assert!(found.contains("seen again\n"), "{found}");
    }
}

#[test]
fn errors_name_a_missing_device() {
    let found = in_namespace("$CLICK -e 'FromDevice(nothing0) -> Discard'");
    if let Some(found) = found {
        assert!(found.contains("nothing0: No such device"), "{found}");
    }
}

#[test]
fn a_firewall_rule_keeps_packets_from_the_kernel() {
    let found = in_namespace(
        r#"
        TOOLS=$(mktemp -d); printf '#!/bin/sh\necho "$@"\nexec cat >/dev/null' >$TOOLS/iptables
        sed -i "s|^echo.*|& >>$TOOLS/calls|" $TOOLS/iptables; chmod +x $TOOLS/iptables
        PATH=$TOOLS:$PATH $CLICK -e 'FromDevice(lo, SNIFFER false) -> Discard; DriverManager(stop)'
        cat $TOOLS/calls; printf '#!/bin/sh\necho no such chain >&2; exit 1' >$TOOLS/iptables
        PATH=$TOOLS:$PATH $CLICK -e 'FromDevice(lo, SNIFFER false) -> Discard; DriverManager(stop)' 2>&1
        rm -r $TOOLS
        "#,
    );
    if let Some(found) = found {
        assert!(found.starts_with("-A INPUT -i lo -j DROP\n-D INPUT -i lo -j DROP\n"), "{found}");
        assert!(found.contains("iptables -A INPUT -i lo -j DROP: no such chain"), "{found}");
    }
}

#[test]
fn errors_name_a_missing_privilege() {
    let found =
        in_namespace("setpriv --bounding-set -all --inh-caps -all $CLICK -e 'FromDevice(lo) -> Discard'");
    if let Some(found) = found {
        // Without `setpriv` this checks nothing.
        assert!(found.contains("needs CAP_NET_RAW") || found.contains("not found"), "{found}");
    }
}

#[test]
fn a_table_binds_ports_of_dpdk_to_interfaces() {
    let found = in_namespace(
        r#"
        CLICKBOX=${CLICK% click}; cd $(mktemp -d)
        ip link add one type veth peer name two && ip link set one up && ip link set two up
        $CLICKBOX run --quiet -e 'FastUDPFlows(RATE 0, LIMIT 50, LENGTH 100, SRCETH 2:0:0:0:0:1, DSTETH 2:0:0:0:0:2,
            SRCIP 10.0.0.1, DSTIP 10.0.0.2, FLOWS 5, FLOWSIZE 10) -> Unqueue(LIMIT 50) -> ToDump(capture)'
        configuration='FromDump(capture) -> sent :: AverageCounterMP -> Queue(100) -> to :: ToDPDKDevice(0000:03:00.0, BLOCKING true);
            from :: FromDPDKDevice(1, N_QUEUES 2) -> k :: Classifier(12/0800, -);
            k[0] -> got :: Counter(COUNT_CALL 50 stop) -> Discard; k[1] -> Discard; DriverManager(wait 10s, stop)'
        bind="--device 0000:03:00.0=af_packet:one --device 1=af_packet:two"
        handlers="--handler sent.count --handler got.count --handler got.byte_count --handler from.kernel_drops --handler to.losses"
        $CLICKBOX run --quiet $bind $handlers -e "$configuration"
        $CLICKBOX run --quiet --device 1=af_packet:two -e "$configuration"
        $CLICKBOX run --quiet --device 1=tap:two -e 'FromDPDKDevice(1) -> Discard'
        $CLICKBOX run --quiet --device 1=af_packet:three -e 'FromDPDKDevice(1) -> Discard'
        rm -r $PWD
        "#,
    );
    let Some(found) = found else { return };
    let (values, errors) = found.split_at(found.find("warning").expect("a warning"));
    let expected =
        "from.kernel_drops = 0\ngot.byte_count = 5000\ngot.count = 50\nsent.count = 50\nto.losses = \n";
    assert_eq!(values, expected, "{errors}");
    for text in [
        "BLOCKING has no effect here: packets without room are dropped as `full`",
        "N_QUEUES has no effect here: queues, threads and buffers are those of the port",
        "0000:03:00.0: no interface has this name: say which one it stands for, as in \
         `clickbox run --device 0000:03:00.0=af_packet:eth0`; in a box, the name is the number of one of its ports",
        "1: the element needs the driver af_packet: use --device 1=af_packet:two",
        "1: three: No such device",
    ] {
        assert!(errors.contains(text), "no {text:?} in: {errors}");
    }
}

#[test]
fn a_table_binds_the_host_to_a_tap() {
    let found = in_namespace(
        r#"
        CLICKBOX=${CLICK% click}
        for name in tap0 tap1; do ip tuntap add $name mode tap && ip link set $name address 02:00:00:00:00:09 up; done
        ip addr add 10.9.0.1/24 dev tap0
        configuration='RatedSource(DATA \<020000000009 020000000008 88b5 0102030405060708>, RATE 100, LIMIT 5) -> t :: Tee;
            t[0] -> to :: ToHost; t[1] -> sniffers :: ToHostSniffers; DriverManager(wait 100ms, stop)'
        bind="--device host=tap:tap0 --device sniffers=tap:tap1"
        $CLICKBOX run --quiet $bind --handler to.drops --handler to.fates --handler sniffers.fates -e "$configuration"
        for name in tap0 tap1; do ip -s link show $name | tr -s ' ' | sed -n '4{s/^ *\([0-9]* *[0-9]*\) .*/\1/;p}'; done
        $CLICKBOX run --quiet -e "$configuration"
        "#,
    );
    let Some(found) = found else { return };
    let (values, errors) = found.split_at(found.find("error").unwrap_or(found.len()));
    assert_eq!(
        values, "sniffers.fates = delivered 5\nto.drops = 0\nto.fates = delivered 5\n110 5\n110 5\n",
        "{errors}"
    );
    let text = "host: no interface leads to the host: add a FromHost, or use `clickbox run` with --device host=tap:tap0";
    assert!(errors.contains(text), "no {text:?} in: {errors}");
}

/// Runs a script with the veth pair `one`, `two`, whose kernel sends nothing on its own. `None` if that is not possible, or if
/// the kernel has no XDP sockets.
fn with_xdp(script: &str) -> Option<String> {
    let start = "CLICKBOX=${CLICK% click}; sysctl -qw net.ipv6.conf.default.disable_ipv6=1
        ip link add one type veth peer name two && ip link set lo up && ip link set one up && ip link set two up\n";
    let found = in_namespace(&format!("{start}{script}"))?;
    if found.contains("Address family not supported") {
        skip(Capability::Root, "the kernel has no XDP sockets");
        return None;
    }
    Some(found)
}

#[test]
fn xdp_sockets_receive_and_send() {
    let found = with_xdp(
        r#"
        configuration='RatedSource(DATA \<ffffffffffff 020000000001 88b5 0102030405060708>, RATE 2000, LIMIT 300)
            -> Queue(500) -> ToDevice(one);
            from :: FromDPDKDevice(0000:03:00.0) -> EtherMirror -> Queue(500) -> to :: ToDevice(two, METHOD XDP);
            FromDevice(one, PROMISC true) -> got :: Counter(COUNT_CALL 300 stop) -> Discard;
            DriverManager(wait 10s, stop)'
        handlers="--handler account --handler from.count --handler from.fates --handler from.kernel_drops
            --handler to.fates --handler to.losses --handler got.byte_count"
        $CLICKBOX run --quiet --device 0000:03:00.0=af_xdp:two $handlers -e "$configuration"
        ip link show two | grep -c xdp
        "#,
    );
    if let Some(found) = found {
        let account = "account = received 600\nmade 300\ndelivered 600\ndiscarded 300\n";
        let elements = "from.count = 300\nfrom.fates = received 300\nfrom.kernel_drops = 0\ngot.byte_count = 6600\n\
                        to.fates = delivered 300\nto.losses = \n";
        assert_eq!(found, format!("{account}{elements}0\n"));
    }
}

#[test]
fn swaps_share_xdp_sockets_and_lose_no_frames() {
    let found = with_xdp(
        r#"
        back='control :: ControlSocket(TCP, 7777, RETRIES 1, RETRY_WARNINGS false);
            from :: FromDevice(two, METHOD XDP, PROMISC true) -> c :: Counter -> EtherMirror -> q :: Queue(5000)
            -> to :: ToDevice(two, METHOD XDP) -> sent :: Counter -> Discard'
        $CLICK -R -e "${back//$'\n'/}" & other=$!
        until exec 3<>/dev/tcp/127.0.0.1/7777; do sleep 0.05; done 2>/dev/null
        read -r -u 3
        $CLICKBOX run --quiet --handler s.count --handler got.count -e '
            s :: RatedSource(DATA \<ffffffffffff 020000000001 88b5 0102030405060708>, RATE 10000, LIMIT 5000)
            -> Queue(5000) -> ToDevice(one);
            FromDevice(one) -> got :: Counter(COUNT_CALL 5000 stop) -> Discard;
            DriverManager(wait 10s, stop)' & sender=$!
        ask() { printf '%s\r\n' "$1" >&3; read -r -u 3 answer; [[ $answer == 200* ]] || echo "$1: $answer"; }
        value() { ask "READ $1"; read -r -u 3 size; read -r -N "${size//[^0-9]/}" -u 3 got; }
        swaps=0
        while kill -0 $sender 2>/dev/null; do
            ask "WRITE hotconfig ${back//$'\n'/}"; swaps=$((swaps + 1))
            # A configuration that is refused leaves the device alone, and so does one that receives twice.
            for refused in 'FromDevice(nothing0, METHOD XDP)' 'FromDevice(two, METHOD XDP) -> Discard; FromDevice(two, METHOD XDP)'; do
                printf '%s\r\n' "WRITE hotconfig $refused -> Discard" >&3; read -r -u 3 answer
                while [[ $answer == 520-* ]]; do read -r -u 3 answer; done
            done
            ip link show two | grep -q xdp || echo "not attached"
            sleep 0.02
        done
        ((swaps > 5)) || echo "$swaps swaps"
        for handler in c.count sent.count q.drops from.count from.kernel_drops from.losses to.losses account; do
            value $handler; echo "$handler $got"
        done
        # Without an element that receives, the host gets the frames again.
        ask "WRITE hotconfig control :: ControlSocket(TCP, 7777, RETRIES 1, RETRY_WARNINGS false); \
            Idle -> ToDevice(two, METHOD XDP); FromDevice(two, PROMISC true) -> host :: Counter -> Discard"
        $CLICK -e 'InfiniteSource(LIMIT 5, STOP true) -> EtherEncap(0x88b5, 2:0:0:0:0:1, ff:ff:ff:ff:ff:ff) -> q :: Queue
            -> to :: ToDevice(one) -> sent :: Counter(COUNT_CALL 5 stop) -> Discard'
        until value host.count; [[ $got == 5 ]]; do sleep 0.02; done
        ask "WRITE stop"; wait $other; ip link show two | grep -c xdp
        "#,
    );
    if let Some(found) = found {
        let expected = "got.count = 5000\ns.count = 5000\nc.count 5000\nsent.count 5000\nq.drops 0\nfrom.count 5000\n\
                        from.kernel_drops 0\nfrom.losses \nto.losses \n\
                        account received 5000\ncopied 5000\ndelivered 5000\ndiscarded 5000\n\n0\n";
        assert_eq!(found, expected);
    }
}

#[test]
fn interfaces_without_xdp_are_used_through_packet_sockets() {
    let found = with_xdp(
        r#"
        source='RatedSource(DATA \<ffffffffffff 020000000001 88b5 0102030405060708>, RATE 1000, LIMIT 30) -> Queue'
        sink='Classifier(12/88b5) -> c :: Counter(COUNT_CALL 30 stop) -> Discard; DriverManager(wait 10s, stop)'
        run() { $CLICKBOX run --quiet --handler c.count "$@" 2>&1; }
        run -e "$source -> ToDevice(lo, METHOD XDP); FromDevice(lo, METHOD XDP) -> $sink"
        run -e "$source -> ToDevice(two, METHOD XDP); FromDevice(two, METHOD XDP, OUTBOUND true) -> $sink"
        OUT=$(mktemp); ${CLICKBOX#timeout 20 } run --quiet --shards 2 -e "FromDevice(two, METHOD XDP) -> Discard" 2>$OUT & shards=$!
        for try in {1..500}; do grep -q shards $OUT && break; sleep 0.02; done; kill -9 $shards; cat $OUT; rm $OUT
        # A sender alone leaves frames to the host.
        run -e "$source -> ToDevice(one); Idle -> ToDevice(two, METHOD XDP); FromDevice(two, PROMISC true) -> $sink"
        run -e 'FromDevice(two, METHOD XDP) -> c :: Counter -> Discard; FromDevice(two, METHOD XDP) -> Discard'
        ip link set one mtu 1000 && ip link set two mtu 1000
        run --handler to.fates -e "InfiniteSource(LENGTH 1015, LIMIT 3) -> q :: Queue; InfiniteSource(LENGTH 1014, LIMIT 2)
            -> q -> to :: ToDevice(two, METHOD XDP); $source -> ToDevice(one); FromDevice(two, METHOD XDP) -> $sink"
        "#,
    );
    let Some(found) = found else { return };
    let lines: Vec<&str> = found.lines().collect();
    for text in [
        "warning: lo: the driver is af_packet instead of af_xdp: the MTU of the device is 65536, and XDP buffers have room for 1774",
        "warning: two: the driver is af_packet instead of af_xdp: frames that this host sends (OUTBOUND) do not pass XDP sockets",
        "warning: two: the driver is af_packet instead of af_xdp: several shards can't share XDP sockets",
        "to.fates = delivered 2",
        "lost too_long 3",
    ] {
        assert_eq!(lines.iter().filter(|line| **line == text).count(), 1, "{text:?} in: {found}");
    }
    assert_eq!(lines.iter().filter(|line| **line == "c.count = 30").count(), 4, "{found}");
    let second = "two: another FromDevice receives from this interface, and XDP sockets have one receiver";
    assert!(found.contains(second), "{found}");
}

/// The figures of the benchmark depend on the machine: all of them must be there, and frames must pass.
#[test]
fn a_switch_between_interfaces_is_measured() {
    let found = with_xdp("$CLICKBOX bench interfaces --driver af_xdp,af_packet --runs 1 --time 20 --json");
    let Some(found) = found else { return };
    let report: serde_json::Value =
        serde_json::from_str(&found).unwrap_or_else(|error| panic!("{error}: {found}"));
    for (row, driver) in ["af_xdp", "af_packet"].into_iter().enumerate() {
        let row = &report["rows"][row];
        assert_eq!(row["driver"], driver);
        for field in ["mpps", "best_mpps", "nanoseconds"] {
            assert!(row[field].as_f64().is_some_and(|figure| figure > 0.0), "{field}: {report}");
        }
        assert!(row["ovs_mpps"].is_null() && row["best_ovs_mpps"].is_null(), "{report}");
    }
}

/// Runs a configuration whose devices are captures; returns whether it succeeded, the values of handlers, and messages.
fn run_on_captures(devices: &[String], config: &str, handlers: &[&str]) -> (bool, String, String) {
    on_captures(&["run", "--quiet"], devices, config, handlers)
}

fn on_captures(run: &[&str], devices: &[String], config: &str, handlers: &[&str]) -> (bool, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clickbox"));
    command.args(run).args(["-e", config]).stdin(Stdio::null());
    command.args(devices.iter().flat_map(|device| ["--device", device]));
    command.args(handlers.iter().flat_map(|handler| ["--handler", handler]));
    let output = command.output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn captures_stand_for_devices() {
    let mix = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/mix.pcap");
    let folder = std::env::temp_dir().join(format!("clickbox-captures-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = |name: &str| folder.join(name).display().to_string();
    let [out, queued, host, packets] = ["out.pcap.gz", "queued.pcap", "host.pcap", "packets.pcap"].map(file);
    // A port of DPDK, a queue before an interface, and the host.
    let config = "from :: FromDPDKDevice(0) -> c :: Counter -> t :: Tee(3) -> to :: ToDPDKDevice(0);
        t[1] -> Queue(3000) -> q :: ToDevice(eth1);
        t[2] -> h :: ToHost;
        FromHost(other) -> n :: Counter -> Discard;";
    let devices =
        [format!("0=pcap:{mix},{out}"), format!("eth1=pcap:,{queued}"), format!("other=pcap:{mix},{host}")];
    let handlers = ["from.count", "c.byte_count", "to.fates", "q.fates", "h.fates", "n.count"];
    let expected = "c.byte_count = 1438144\nfrom.count = 2500\nh.fates = delivered 2498\nlost too_short 2\nn.count = 2500\n\
                    q.fates = delivered 2500\nto.fates = delivered 2500\n";
    let (succeeded, values, messages) = run_on_captures(&devices, config, &handlers);
    assert_eq!((succeeded, values.as_str()), (true, expected), "{messages}");
    // What was written is read again.
    let config = "FromNetmapDevice(netmap:x) -> c :: Counter -> Discard";
    for (path, count, bytes) in
        [(&out, 2500, 1_438_144), (&queued, 2500, 1_438_144), (&host, 2498, 1_438_120)]
    {
        let device = [format!("netmap:x=pcap:{path}")];
        let (_, values, messages) = run_on_captures(&device, config, &["c.count", "c.byte_count"]);
        assert_eq!(values, format!("c.byte_count = {bytes}\nc.count = {count}\n"), "{messages}");
    }
    // IP packets, of a tunnel.
    let config = format!(
        "FromDump({mix}) -> CheckIPHeader(14) -> Strip(14) -> t :: KernelTun(10.0.0.1/8, DEVNAME tun) -> Discard"
    );
    let (succeeded, values, messages) =
        run_on_captures(&[format!("tun=pcap:,{packets}")], &config, &["t.fates"]);
    assert!(succeeded && values.starts_with("t.fates = delivered "), "{values} {messages}");
    let written = values.trim_end().rsplit(' ').next().expect("a number").to_string();
    let config = "Idle -> t :: KernelTun(10.0.0.1/8, DEVNAME tun) -> c :: CheckIPHeader -> Discard";
    let device = [format!("tun=pcap:{packets}")];
    let (_, values, messages) = run_on_captures(&device, config, &["c.drops", "t.packets"]);
    assert_eq!(values, format!("c.drops = 0\nt.packets = {written}\n"), "{messages}");
    // Problems name the file, or say what to write.
    let receiver = "FromDPDKDevice(0) -> Discard";
    for (device, config, problem) in [
        (
            format!("0=pcap:{packets}"),
            receiver,
            "the capture has IP packets, and the element needs Ethernet frames",
        ),
        ("0=pcap:/nowhere".into(), receiver, "/nowhere: No such file or directory"),
        ("0=pcap:/dev/null".into(), receiver, "/dev/null: not a capture"),
        ("0=pcap:in.pcap".into(), "Idle -> ToDPDKDevice(0)", "use --device 0=pcap:in.pcap,OUT.pcap"),
    ] {
        let (succeeded, _, messages) = run_on_captures(&[device], config, &[]);
        assert!(!succeeded && messages.contains(problem), "{problem:?} is not in: {messages}");
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// A run on captures ends, whatever lets its entries expire, and then nothing waits in a queue.
#[test]
fn runs_on_captures_end() {
    let mix = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/mix.pcap");
    let out = std::env::temp_dir().join(format!("clickbox-captures-end-{}.pcap", std::process::id()));
    let config = "FromDevice(0) -> Queue(3000) -> Unqueue -> Queue(3000) -> to :: ToDevice(1);
        FromDevice(1) -> Discard;
        FromDevice(0) -> Strip(14) -> CheckIPHeader -> IPClassifier(tcp) -> IPRewriter(pattern 192.0.2.1 1024-65535 - - 0 0)
            -> PI(1, 1, 1, 10) -> a :: ARPQuerier(192.0.2.1, 2:0:0:0:0:1) -> Queue -> Unqueue -> Discard;
        Idle -> [1]a;
        Script(wait 10ms)";
    let devices = [format!("0=pcap:{mix}"), format!("1=pcap:,{}", out.display())];
    for (run, expected) in [
        (["run", "--quiet", "--handler", "to.fates"], "to.fates = delivered 2500\n"),
        (["click", "--no-warnings", "--handler", "to.fates"], "delivered 2500\n"),
    ] {
        let (succeeded, values, messages) = on_captures(&run, &devices, config, &[]);
        assert_eq!((succeeded, values.as_str()), (true, expected), "{messages}");
    }
    std::fs::remove_file(&out).expect("removed");
}
