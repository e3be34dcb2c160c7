//! Services and chains, from the command line to the packets in boxes.

mod support;

use support::{Daemon, wait};

/// Sends UDP packets of 32 flows when it is told to, and counts those that come back.
const SOURCE: &str = "
    s :: RatedSource(LENGTH 18, RATE 20000, LIMIT 1000, ACTIVE false) -> UDPIPEncap(10.0.0.1, 1000, 10.9.0.1, 53)
    -> SetRandIPAddress(10.0.0.0/27) -> StoreIPAddress(src) -> SetIPChecksum -> SetUDPChecksum
    -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> ToDevice(0);
    FromDevice(0) -> back :: Counter -> Discard;\n";
const SINK: &str = "FromDevice(0) -> got :: Counter -> EtherMirror -> Strip(14) -> CheckIPHeader -> IPMirror \
                    -> Unstrip(14) -> ToDevice(0);\n";
const FIREWALL: &str =
    "FromDevice(0) -> out :: Counter -> ToDevice(1); FromDevice(1) -> in :: Counter -> ToDevice(0);\n";
/// Sends packets of one host elsewhere.
const IDS: &str = "FromDevice(0) -> c :: Counter -> k :: Classifier(26/0a000003, -);
    k[0] -> ToService(quarantine); k[1] -> ToNext;\n";
const JAIL: &str = "FromDevice(0) -> got :: Counter -> Discard;\n";

/// A counter of a box.
fn count(daemon: &Daemon, handler: &str) -> u64 {
    let (code, text) = daemon.run(&["read", handler]);
    text.trim().parse().unwrap_or_else(|_| panic!("{handler}: {code} {text}"))
}

#[test]
fn a_user_chains_services() {
    let daemon = Daemon::start("services");
    let file = |name: &str, text: &str| daemon.file(name, text);
    daemon.check(
        &["service", "create", "fw", &file("fw.click", FIREWALL)],
        2,
        &["no steering switch", "--mode steering"],
    );
    daemon.check(&["switch", "create", "lan", "--mode", "steering"], 0, &[]);
    daemon.check(&["service", "ls"], 0, &["no services"]);
    daemon.check(&["chain", "ls"], 0, &["no chains"]);
    for (name, text) in [("source", SOURCE), ("sink", SINK)] {
        let mac = if name == "source" { "lan,mac=02:00:00:00:00:01" } else { "lan,mac=02:00:00:00:00:02" };
        let path = file(&format!("{name}.click"), text);
        // More slots than packets are sent at once.
        let options = ["--sandbox", "process", "--ring", "2048", "--attach", mac];
        daemon.check(&[&["create", name, &path], &options[..]].concat(), 0, &[]);
    }
    let create = |name: &str, text: &str, more: &[&str]| {
        let path = file(&format!("{name}.click"), text);
        let mut words = vec!["service", "create", name, &path, "--sandbox", "process", "--ring", "2048"];
        words.extend(more);
        daemon.check(&words, 0, &[&format!("{name} has "), "at switch lan"]);
    };
    create("fw", FIREWALL, &["--faces", "in=0,out=1"]);
    create("quarantine", JAIL, &[]);
    let path = file("ids.click", IDS);
    daemon.check(
        &["service", "create", "ids", &path, "--may-send-to", "quarntine"],
        2,
        &["no service quarntine"],
    );
    // Without the right, the configuration does not name the other service.
    daemon.check(&["service", "create", "ids", &path], 5, &["quarantine"]);
    create("ids", IDS, &["--replicas", "2", "--may-send-to", "quarantine,port:sink.0"]);
    daemon.check(&["ps"], 0, &["ids-1", "ids-2", "fw-1", "quarantine-1"]);
    daemon.check(&["show", "ids-2"], 0, &["service", "ids", "transparent"]);
    daemon.check(
        &["rm", "--force", "ids-2"],
        6,
        &["an instance of service ids", "clickbox service scale ids N"],
    );
    daemon.check(&["reload", "ids-2", &path], 6, &["clickbox service reload ids FILE"]);

    let web = [
        "chain",
        "create",
        "web",
        "fw",
        "ids",
        "--from",
        "lan.source.0",
        "--to",
        "lan.sink.0",
        "--both-ways",
    ];
    daemon.check(&web, 0, &["web at switch lan: source.0 <-> fw <-> ids <-> sink.0"]);
    daemon.check(&["chain", "create", "x", "fv", "--to", "sink.0"], 4, &["there is no service fv"]);
    let two = ["chain", "create", "x", "fw", "--switch", "wan", "--to", "lan.sink.0"];
    daemon.check(&two, 2, &["a chain belongs to one switch, not to wan and lan", "--driver pipe"]);
    daemon.check(&["service", "rm", "ids"], 6, &["used by chain lan/web", "--force"]);
    daemon.check(&["service", "show", "idx"], 4, &["did you mean ids?"]);
    daemon.check(&["show", "chain/wob"], 4, &["there is no chain wob", "did you mean web?"]);
    daemon.check(&["write", "source/s.active", "true"], 0, &[]);
    let ended = || count(&daemon, "source/back.count") + count(&daemon, "quarantine-1/got.count");
    wait("packets come back", || ended() == 1000);
    let jailed = count(&daemon, "quarantine-1/got.count");
    assert!((10..100).contains(&jailed), "{jailed} of 1000 are from one of 32 hosts");
    assert_eq!((count(&daemon, "fw-1/out.count"), count(&daemon, "fw-1/in.count")), (1000, 1000 - jailed));
    let chain = daemon.json(&["show", "chain/web"]);
    let packets = |hop: usize, way: usize| chain["hops"][hop]["traffic"][way]["packets"].as_u64();
    for hop in 0..2 {
        assert_eq!((packets(hop, 0), packets(hop, 1)), (Some(1000), Some(1000 - jailed)), "{chain}");
    }
    assert_eq!(
        chain["left"][0],
        serde_json::json!({ "packets": 1000 - jailed, "bytes": 60 * (1000 - jailed), "lost": 0 })
    );
    daemon.check(&["show", "chain/lan/web"], 0, &["forward", "reverse", "1,000", "left sink.0"]);
    daemon.check(&["top", "--chains"], 0, &["1 chain; in ", "lan/web", "fw", "ids"]);
    daemon.check(&["service", "show", "ids"], 0, &["ids-1", "ids-2", "up", "quarantine, port:sink.0"]);
    daemon.check(&["service", "ls"], 0, &["ids", "lan", "REPLICAS"]);
    daemon.check(&["service", "ls", "lan"], 0, &["fw", "ids", "REPLICAS"]);
    daemon.check(&["chain", "ls", "lan"], 0, &["web", "fw"]);
    daemon.check(&["switch", "create", "none"], 0, &[]);
    daemon.check(&["service", "ls", "none"], 0, &["switch none has no services"]);
    daemon.check(&["chain", "ls", "none"], 0, &["switch none has no chains"]);
    daemon.check(&["chain", "ls", "lam"], 4, &["there is no switch lam"]);

    // A program is an image, and no configuration. This one is none that runs.
    let image = file("scrub.image", "\x7fELF");
    daemon.check(&["service", "create", "scrub", &image], 5, &["the image can't be used"]);
    // A function gives flows another chain.
    let into_chain = IDS.replace("ToService(quarantine)", "ToChain(jailed, FLOW true)");
    let path = file("director.click", &into_chain);
    let director =
        ["service", "create", "director", &path, "--sandbox", "process", "--may-send-to", "chain:jailed"];
    daemon.check(&director, 2, &["switch lan has no chain jailed, which the instances may send packets to"]);
    daemon.check(&["chain", "create", "jailed", "quarantine", "--to", "lan.sink.0"], 0, &[]);
    daemon.check(&director, 0, &["director has 1 instance"]);
    daemon.check(&["service", "show", "director"], 0, &["chain:jailed"]);
    daemon.check(&["chain", "rm", "jailed"], 6, &["chain lan/jailed is used by service director", "--force"]);
    daemon.check(&["service", "rm", "director"], 0, &[]);
    daemon.check(&["chain", "rm", "jailed"], 0, &[]);

    // The accounts of places agree: what entered chain and services, and what became of it.
    let account = daemon.json(&["account"]);
    let row = |kind: &str, name: &str, key: &str| {
        let places = account["places"].as_array().expect("places");
        let found = places.iter().find(|row| row["kind"] == kind && row[key] == name);
        let row = found.unwrap_or_else(|| panic!("no {kind} {name} in {account}")).clone();
        assert_eq!(row["difference"], 0, "{row}");
        ["in", "made", "out", "discarded", "waiting"].map(|name| row[name].as_u64().expect("a number"))
    };
    // Of each direction, both hops are sent to and come back from, but for what was diverted.
    let (there, back) = (1000, 1000 - jailed);
    assert_eq!(row("chain", "web", "chain"), [3 * there + 3 * back, 0, 3 * there + 3 * back, 0, 0]);
    assert_eq!(row("service", "fw", "service"), [there + back, 0, there + back, 0, 0]);
    assert_eq!(row("service", "ids", "service"), [there + back, 0, there + back, 0, 0]);
    assert_eq!(row("service", "quarantine", "service"), [jailed, 0, 0, jailed, 0]);
    daemon.check(&["account", "service/ids"], 0, &["service ids", "ring to ids-1:0"]);
    daemon.check(&["account", "ids"], 0, &["service ids", "ring to ids-1:0"]);
    daemon.check(&["account", "chain/lan/web"], 0, &["chain lan/web", "service fw", "ring to ids-2:0"]);
    let places = daemon.check(&["account", "web"], 0, &["chain lan/web", "service fw", "ring to ids-2:0"]);
    for other in ["switch lan", "port lan/source.0", "box source", "service quarantine"] {
        assert!(!places.contains(other), "{other} in {places}");
    }
    daemon.check(&["account", "wbe"], 4, &["no box, switch, service, chain or stack wbe"]);
    daemon.check(&["account", "lan"], 0, &["chain lan/web"]);
    let metrics = daemon.metrics();
    for line in [
        format!(
            "clickbox_chain_packets_total{{switch=\"lan\",chain=\"web\",hop=\"1\",service=\"fw\",direction=\"forward\"}} {there}"
        ),
        format!(
            "clickbox_chain_packets_total{{switch=\"lan\",chain=\"web\",hop=\"2\",service=\"ids\",direction=\"reverse\"}} {back}"
        ),
        format!(
            "clickbox_chain_left_packets_total{{switch=\"lan\",chain=\"web\",direction=\"forward\"}} {back}"
        ),
        r#"clickbox_chain_lost_packets_total{switch="lan",chain="web",hop="1",service="fw",direction="forward"} 0"#.into(),
        format!("clickbox_service_packets_total{{service=\"fw\",owner=\"default\"}} {}", there + back),
        "clickbox_service_instances{service=\"ids\",owner=\"default\",state=\"up\"} 2".into(),
        "clickbox_service_flows{service=\"ids\",owner=\"default\"} 32".into(),
        "clickbox_service_overruled_packets_total{service=\"ids\",owner=\"default\"} 0".into(),
    ] {
        assert!(metrics.contains(&line), "no {line} in {metrics}");
    }

    // Only packets that a flow sends there pass the other chain.
    daemon.check(
        &["chain", "create", "dns", "ids", "--to", "sink.0"],
        0,
        &["dns at switch lan: flows -> ids -> sink.0"],
    );
    daemon.check(
        &["flow", "add", "lan", "--match", "tcp", "--chain", "dnn"],
        4,
        &["no chain dnn", "did you mean dns?"],
    );
    daemon.check(&["flow", "add", "lan", "--match", "tcp", "--chain", "dns"], 0, &["flow 1"]);
    daemon.check(&["flow", "ls"], 0, &["chain:dns"]);
    daemon.check(&["chain", "rm", "dns"], 6, &["used by flow 1", "--force"]);
    daemon.check(&["chain", "rm", "--force", "dns"], 0, &[]);

    // A changed chain, and instances that come and go.
    daemon.check(&["chain", "set", "web", "fw"], 0, &["web at switch lan: source.0 <-> fw <-> sink.0"]);
    let traffic = &daemon.json(&["show", "chain/web"])["hops"][0]["traffic"];
    let packets = [0, 1].map(|way| traffic[way]["packets"].as_u64());
    assert_eq!(packets, [Some(there), Some(back)], "a hop keeps its counters");
    daemon.check(&["service", "scale", "fw"], 2, &["<N|--auto <MIN-MAX>>"]);
    daemon.check(&["service", "scale", "fw", "--auto", "3-2"], 2, &["a range of instances is `MIN-MAX`"]);
    daemon.check(&["service", "scale", "fw", "--auto", "2-3"], 0, &["fw has 2 instances"]);
    daemon.check(&["service", "show", "fw"], 0, &["2 (2-3)"]);
    daemon.check(&["events"], 0, &["service fw is scaled by its load from now on: 2-3 instances"]);
    daemon.check(&["service", "scale", "fw", "2"], 0, &["fw has 2 instances"]);
    daemon.check(&["events"], 0, &["service fw is no longer scaled by its load"]);
    daemon.check(&["ps"], 0, &["fw-2"]);
    daemon.check(&["suspend", "ids-1"], 0, &[]);
    let state = |name: &str| {
        let text = daemon.check(&["service", "show", "ids"], 0, &[]);
        let line = text.lines().find(|line| line.starts_with(name)).expect("the instance").to_string();
        line.split_whitespace().nth(1).expect("a state").to_string()
    };
    assert_eq!((state("ids-1"), state("ids-2")), ("suspended".into(), "up".into()));
    daemon.check(&["resume", "ids-1"], 0, &[]);
    assert_eq!(state("ids-1"), "up");
    daemon.check(
        &["service", "scale", "ids", "1", "--drain", "1"],
        0,
        &["ids has 1 instance", "; 1 was taken out"],
    );
    wait("the instance is drained", || {
        daemon.json(&["service", "show", "ids"])["instances"].as_array().map(Vec::len) == Some(1)
    });
    daemon.check(
        &["events"],
        0,
        &["service ids was scaled from 2 instances to 1 instance", "ids-2", "was removed"],
    );
    // The service keeps the counts of the instance that is gone.
    let ids = daemon.json(&["account", "service/ids"]);
    let ids = ids["places"].as_array().and_then(|rows| rows.iter().find(|row| row["kind"] == "service"));
    let ids = ids.expect("the row of the service");
    assert_eq!((&ids["in"], &ids["difference"]), (&(there + back).into(), &0.into()), "{ids}");
    daemon.check(&["service", "show", "ids"], 0, &["removed"]);
    let line =
        format!("clickbox_service_packets_total{{service=\"ids\",owner=\"default\"}} {}", there + back);
    let metrics = daemon.metrics();
    assert!(metrics.contains(&line), "no {line} in {metrics}");
    let before = count(&daemon, "source/back.count");
    daemon.check(&["write", "source/s.limit", "2000"], 0, &[]);
    daemon.check(&["write", "source/s.active", "true"], 0, &[]);
    wait("packets pass the other chain", || count(&daemon, "source/back.count") == before + 1000);
    daemon.check(&["switch", "rm", "--force", "lan"], 6, &["the services", "ids"]);
    daemon.check(&["service", "rm", "--force", "fw"], 0, &[]);
    daemon.check(&["service", "rm", "ids", "quarantine"], 0, &[]);
    daemon.check(&["chain", "ls"], 0, &["no chains"]);
    daemon.check(&["switch", "rm", "--force", "lan"], 0, &[]);
}

#[test]
fn a_stack_file_has_services() {
    let daemon = Daemon::start("service-stack");
    daemon.file("ids.click", "FromDevice(0) -> c :: Counter -> ToDevice(1); FromDevice(1) -> ToDevice(0);\n");
    let text = r#"
        [switches.lan]
        mode = "steering"
        ports = { up.driver = "null", wan.driver = "null" }
        flows = [{ match = "tcp", output = "chain:web" }]
        [service.ids]
        switch = "lan"
        file = "ids.click"
        sandbox = "process"
        faces = "in=0,out=1"
        replicas = 2
        dead_after = "500ms"
        may_send_to = ["port:wan", "chain:web"]
        [chain.web]
        switch = "lan"
        services = ["ids"]
        from = "up"
        to = "wan"
        both_ways = true
    "#;
    let path = daemon.file("edge.toml", text);
    let created = ["create  switch/lan", "create  service/ids", "create  chain/lan/web"];
    daemon.check(&["diff", &path], 1, &created);
    daemon.check(&["up", &path], 0, &created);
    daemon.check(&["up", &path], 0, &["nothing to change"]);
    daemon.check(&["service", "show", "ids"], 0, &["dead after      500ms"]);
    let (_, exported) = daemon.run(&["export", "edge"]);
    assert!(exported.contains("[service.ids]") && exported.contains("[chain.web]"), "{exported}");
    let path_of_export = daemon.file("exported.toml", &exported);
    daemon.check(&["up", &path_of_export], 0, &["nothing to change"]);
    let by_load = text.replace("replicas = 2", "replicas = \"2-4\"").replace("500ms", "2s");
    let path_by_load = daemon.file("edge.toml", &by_load);
    let changes = ["change  service/ids", "range of replicas none -> 2-4; dead_after"];
    daemon.check(&["up", &path_by_load], 0, &changes);
    daemon.check(&["service", "ls"], 0, &["2 (2-4)"]);
    let (_, exported) = daemon.run(&["export", "edge"]);
    assert!(
        exported.contains("replicas = \"2-4\"") && exported.contains("dead_after = \"2s\""),
        "{exported}"
    );
    daemon.check(&["up", &daemon.file("edge.toml", text)], 0, &["change  service/ids"]);
    daemon.file("ids.click", "FromDevice(0) -> d :: Counter -> ToDevice(1); FromDevice(1) -> ToDevice(0);\n");
    let path = daemon.file("edge.toml", &text.replace("replicas = 2", "replicas = 3"));
    let changes =
        ["reload  service/ids", "replicas 2 -> 3", "-FromDevice(0) -> c ::", "+FromDevice(0) -> d ::"];
    daemon.check(&["diff", &path], 1, &changes);
    daemon.check(&["up", &path], 0, &["reload  service/ids"]);
    for name in ["ids-1", "ids-2", "ids-3"] {
        daemon.check(&["read", &format!("{name}/d.count")], 0, &["0"]);
    }
    daemon.check(
        &["down", &path],
        0,
        &["remove  service/ids", "remove  chain/lan/web", "remove  switch/lan"],
    );
    daemon.check(&["ps"], 0, &["no boxes"]);
}
