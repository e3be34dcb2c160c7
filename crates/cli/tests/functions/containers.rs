//! Functions in namespaces and containers.

use super::*;

/// A function that sees nothing of the host but its program and the folder of its service: in mount, process, network, IPC, name
/// and user namespaces that only it has.
#[test]
fn a_function_runs_in_namespaces_of_its_own() {
    if !require(Capability::Root) {
        return;
    }
    let daemon = daemon("function-namespaces", &[]);
    let root = daemon.folder.join("root");
    fs::create_dir_all(root.join("function")).expect("a folder");
    fs::copy(built().join("forward"), root.join("nf")).expect("the program");
    let (root, own) = (root.to_str().expect("a plain path"), folder(&daemon, "nf"));
    let script = format!("mount --bind {} {root}/function && exec chroot {root} /nf", own.display());
    let child = Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--net",
            "--ipc",
            "--uts",
        ])
        .args(["sh", "-c", &script])
        .stderr(Stdio::inherit())
        .spawn();
    let function = Function(child.expect("unshare starts"));
    wait("it joins", || ups(&daemon, "nf") == 1);
    pass(&daemon, 1000);
    assert_eq!(port(&daemon, "nf-1.0"), (1000, 1000, serde_json::json!({})));
    function.kill();
    wait("it is gone", || ups(&daemon, "nf") == 0);
}

/// The same with podman: an image from nothing but the program, as `clickbox function new` describes it.
#[test]
fn a_function_runs_in_a_container() {
    let daemon = daemon("function-container", &[]);
    let image = daemon.folder.join("image");
    fs::create_dir_all(&image).expect("a folder");
    fs::copy(built().join("forward"), image.join("nf")).expect("the program");
    fs::write(image.join("Containerfile"), "FROM scratch\nCOPY nf /nf\nENTRYPOINT [\"/nf\"]\n")
        .expect("a file");
    let name = format!("clickbox-test-{}", std::process::id());
    let build = Command::new("podman").args(["build", "-q", "-t", &name]).arg(&image).output();
    match build {
        Ok(output) if output.status.success() => {}
        Ok(output) => return skip(Capability::Containers, String::from_utf8_lossy(&output.stderr)),
        Err(error) => return skip(Capability::Containers, error),
    }
    let volume = format!("{}:/function", folder(&daemon, "nf").display());
    let mut command = Command::new("podman");
    command.args(["run", "--rm", "--network=none", "--name", &name, "-v", &volume]);
    // Limits that a container may set in a container.
    command.args(["--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096", "--runtime=runc"]);
    let begin = Instant::now();
    let child = command.arg(&name).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut function = Function(child.expect("podman starts"));
    while ups(&daemon, "nf") == 0 {
        if function.0.try_wait().expect("its state").is_some() || begin.elapsed() > Duration::from_secs(20) {
            let _ = Command::new("podman").args(["rm", "-f", &name]).output();
            return skip(Capability::Containers, "podman does not run the container");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let started = begin.elapsed();
    pass(&daemon, 1000);
    println!("from podman run: an instance after {started:.0?}, 1,000 packets after {:.0?}", begin.elapsed());
    assert_eq!(port(&daemon, "nf-1.0"), (1000, 1000, serde_json::json!({})));
    // podman passes the signal on, and the function leaves.
    succeed(Command::new("podman").args(["stop", "--time", "5", &name]));
    wait("it is gone", || ups(&daemon, "nf") == 0);
    daemon.until(&["events"], "nf-1 left service nf: it left in order");
    let _ = Command::new("podman").args(["rmi", "-f", &name]).output();
}
