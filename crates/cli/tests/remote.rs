//! A daemon on another host: commands reach it over TCP only with its certificate and its token.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use support::Daemon;

#[test]
fn commands_reach_a_daemon_over_tcp() {
    let folder = std::env::temp_dir().join(format!("clickbox-remote-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let made = rcgen::generate_simple_self_signed(["localhost".to_string()]).expect("a certificate");
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
        path.to_str().expect("a plain path").to_string()
    };
    let certificate = file("certificate.pem", &made.cert.pem());
    let key = file("key.pem", &made.signing_key.serialize_pem());
    let token = file("token", "a token of many bytes\n");
    let listen = ["--listen", "127.0.0.1:0", "--certificate", &certificate, "--key", &key];
    let daemon =
        Daemon::start_with("remote", &[&listen[..], &["--token-file", &token, "--no-store"]].concat());
    let port = daemon.ready["listen"].as_str().and_then(|at| at.rsplit_once(':')).expect("an address").1;
    let address = format!("https://localhost:{port}");
    let text = daemon.file("a.click", "i :: InfiniteSource(LIMIT 3) -> c :: Counter -> Discard;\n");

    // Given as options.
    let options = ["--daemon", &address, "--token-file", &token, "--certificates", &certificate];
    let with = |arguments: &[&'static str]| -> Vec<&str> { [arguments, &options].concat() };
    let create = ["create", "fw", &text, "--sandbox", "process"];
    daemon.check(&[&create[..], &options].concat(), 0, &["fw runs"]);
    daemon.until(&with(&["read", "fw/c.count"]), "3");
    daemon.check(&with(&["events", "--json"]), 0, &["box_created"]);
    // Given in the environment.
    let environment = [
        ("CLICKBOX_SOCKET", address.as_str()),
        ("CLICKBOX_TOKEN", "a token of many bytes"),
        ("CLICKBOX_CERTIFICATES", &certificate),
    ];
    let (code, output) = daemon.run_with(&["ps", "--quiet"], &environment);
    assert_eq!((code, output.as_str()), (0, "fw\n"));

    // A wrong token, no token, and an untrusted certificate.
    let wrong = file("wrong", "another token entirely");
    let at = ["ps", "--daemon", &address, "--certificates", &certificate];
    daemon.check(&[&at[..], &["--token-file", &wrong]].concat(), 1, &["--token-file"]);
    daemon.check(&at, 1, &["--token-file"]);
    // Secrets that others could read are refused, by the client and by the daemon.
    let set_mode =
        |path: &str, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
    set_mode(&wrong, 0o644);
    daemon.check(&[&at[..], &["--token-file", &wrong]].concat(), 2, &["chmod 600", &wrong]);
    for secret in [&token, &key] {
        set_mode(secret, 0o640);
        let socket = folder.join("shared").to_str().expect("a plain path").to_string();
        let more = ["--token-file", &token, "--no-store", "--socket", &socket];
        let daemon_of_shared = [&["daemon"][..], &listen, &more].concat();
        daemon.check(&daemon_of_shared, 1, &["chmod 600", secret]);
        set_mode(secret, 0o600);
    }
    daemon.check(&["ps", "--daemon", &address, "--token-file", &token], 1, &["--certificates"]);
    // A certificate like the default of `openssl req -x509`: the error tells how to make a usable one.
    let mut parameters = rcgen::CertificateParams::new(["localhost".to_string()]).expect("parameters");
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let pair = rcgen::KeyPair::generate().expect("a key");
    let signing = file("signing.pem", &parameters.self_signed(&pair).expect("a certificate").pem());
    let key = file("signing-key.pem", &pair.serialize_pem());
    let listen = ["--listen", "127.0.0.1:0", "--certificate", &signing, "--key", &key];
    let other =
        Daemon::start_with("signing", &[&listen[..], &["--token-file", &token, "--no-store"]].concat());
    let port = other.ready["listen"].as_str().and_then(|at| at.rsplit_once(':')).expect("an address").1;
    let at = format!("https://localhost:{port}");
    other.check(
        &["ps", "--daemon", &at, "--token-file", &token, "--certificates", &signing],
        1,
        &["CA:FALSE"],
    );
    // The same daemon also serves its Unix socket.
    daemon.check(&["ps", "--quiet"], 0, &["fw\n"]);
    fs::remove_dir_all(&folder).expect("the folder goes");
}
