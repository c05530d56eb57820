//! A product around programs for Swoole, as its README describes it: its own commands start servers
//! by `outboard run`, and named servers run the same programs.

#![forbid(unsafe_code)]

use outboard_e2e::page::{blocks, repository};
use outboard_e2e::{Client, Launch, NamedServers, Scratch, Server, eventually};
use serde_json::{Value, json};
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A copy of the product, whose servers are on free ports; they are stopped on drop.
struct Product {
    scratch: Scratch,
    /// Two servers, the management of the second, and one more.
    ports: [u16; 4],
}

impl Product {
    fn new() -> Product {
        let scratch = Scratch::new("product");
        copy(scratch.path());
        let listeners = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port is free"));
        let ports = listeners.each_ref().map(|one| one.local_addr().expect("it is bound").port());
        let product = Product { scratch, ports };
        for (own, port) in ["9510", "9511", "9512"].into_iter().zip(ports) {
            product.replace("conf/demo.php", own, &port.to_string());
            product.replace("conf/mvc.php", own, &port.to_string());
        }
        product
    }

    fn folder(&self) -> PathBuf {
        self.scratch.path().join("product")
    }

    fn replace(&self, file: &str, from: &str, to: &str) {
        let file = self.folder().join(file);
        let text = fs::read_to_string(&file).expect("it is in the product");
        fs::write(&file, text.replace(from, to)).expect("a copy of ours");
    }

    /// `product.php`, run by PHP without the extension.
    fn run(&self, arguments: &[&str]) -> Output {
        let outboard = Server::binary().display().to_string();
        // Its commands send signals to its servers, so these run as the same user.
        let user = if rustix::process::geteuid().is_root() { " --user root" } else { "" };
        Command::new("timeout")
            .args(["60", "php", "product.php"])
            .args(arguments)
            .env("PRODUCT_PHP", format!("{outboard} run{user}"))
            .current_dir(self.folder())
            .output()
            .expect("PHP is installed")
    }

    /// Types lines in the product's folder; each has to succeed.
    #[track_caller]
    fn types(&self, text: &str) -> String {
        let binary = Server::binary();
        let path = std::env::var("PATH").unwrap_or_default();
        let folder = binary.parent().expect("of a file").display();
        let output = Command::new("timeout")
            .args(["120", "bash", "-euc", &text.replace("curl ", "curl -sS --fail ")])
            .env("PATH", format!("{folder}:{path}"))
            .current_dir(self.folder())
            .output()
            .expect("bash is there");
        assert!(output.status.success(), "{text}\n{output:?}\n{}", self.logs());
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A command of a page for this product: with its ports, and the user who runs the test.
    fn elsewhere(&self, text: &str) -> String {
        let user = if rustix::process::geteuid().is_root() { " --user root" } else { "" };
        let text = text.replace("\"outboard run\"", &format!("\"outboard run{user}\""));
        let [demo, mvc, ..] = self.ports.map(|port| port.to_string());
        text.replace("9510", &demo).replace("9511", &mvc)
    }

    #[track_caller]
    fn prints(&self, arguments: &[&str], words: &[&str]) -> String {
        let output = self.run(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{arguments:?}: {output:?}\n{}", self.logs());
        for word in words {
            assert!(text.contains(word), "{word:?} is not in:\n{text}");
        }
        text
    }

    fn logs(&self) -> String {
        let log = |name| fs::read_to_string(self.folder().join(name)).unwrap_or_default();
        [log("var/log/demo.log"), log("var/log/mvc.log")].concat()
    }

    fn pid(&self, process: &str) -> u32 {
        let file = self.folder().join(format!("var/run/{process}.pid"));
        fs::read_to_string(file).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    fn client(&self, number: usize) -> Client {
        Client::new(SocketAddr::from(([127, 0, 0, 1], self.ports[number])))
    }
}

impl Drop for Product {
    fn drop(&mut self) {
        self.run(&["stop"]);
    }
}

fn copy(folder: &Path) {
    let source = repository().join("swoole/examples/product");
    let copied = Command::new("cp").arg("-r").arg(source).arg(folder).status();
    assert!(copied.expect("cp is there").success());
    let product = folder.join("product");
    let open = Command::new("chmod").args(["-R", "a+rwX"]).arg(product).status();
    assert!(open.expect("chmod is there").success());
}

fn title(pid: u32) -> String {
    let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.trim_end_matches('\0').to_owned()
}

#[test]
fn its_commands_start_find_and_stop_a_server() {
    let product = Product::new();
    product.prints(&["list"], &["demo         stopped", "mvc          stopped"]);
    assert_eq!(product.run(&["status", "demo"]).status.code(), Some(1));
    product.prints(&["start", "demo"], &["demo started"]);
    product.prints(&["start", "demo"], &["demo is already running"]);
    let master = product.pid("demo-master");
    let status = product.prints(&["status", "demo"], &["status       running", "production"]);
    assert!(status.contains(&format!("master       {master}\n")), "{status}");
    assert_eq!(title(product.pid("demo-manager")), "product-demo-manager");

    let page = product.client(0).get("/").expect(200);
    page.saying("<h1>Hello, product</h1>");

    product.prints(&["restart", "demo"], &["demo stopped", "demo started"]);
    assert_ne!(product.pid("demo-master"), master);
    product.client(0).get("/").expect(200);
    product.prints(&["stop", "demo"], &["demo stopped"]);
    product.prints(&["list"], &["demo         stopped"]);
    assert_eq!(product.pid("demo-master"), 0, "onShutdown removes the file");
    assert_eq!(product.run(&["start", "nowhere"]).status.code(), Some(1));
    assert_eq!(product.run(&["jump"]).status.code(), Some(2));
}

#[test]
fn a_reload_by_signal_to_the_manager_loads_changed_code() {
    let product = Product::new();
    product.prints(&["start", "demo"], &["demo started"]);
    let (master, manager) = (product.pid("demo-master"), product.pid("demo-manager"));
    product.client(0).get("/").expect(200).saying("<h1>Hello, product</h1>");
    product.replace("src/demo/Worker.php", "Hello, product", "Another page..");
    product.prints(&["reload", "demo"], &["demo reloads"]);
    eventually("the new page", || {
        product.client(0).get("/").expect(200).text() == "<h1>Another page..</h1>"
    });
    eventually("the end of the old manager", || title(manager).is_empty());
    assert_eq!(product.pid("demo-master"), master, "onShutdown is of the server's end only");
    assert_eq!(title(product.pid("demo-manager")), "product-demo-manager");
    assert!(!product.logs().contains("exited"), "{}", product.logs());
}

#[test]
fn the_readme_says_what_happens() {
    let product = Product::new();
    let page = Path::new("swoole/examples/product/README.md");
    let typed: Vec<String> =
        blocks(page).into_iter().filter(|block| block.language == "sh").map(|b| b.text).collect();
    let [commands, configuration] = typed.try_into().expect("two blocks");
    let text = product.elsewhere(&commands).replace("cd swoole/examples/product", ":");
    let said = product.types(&text);
    for words in
        ["mvc started", "<h1>Hello, product</h1>", "\"six\":6", "mvc reloads", "mvc stopped"]
    {
        assert!(said.contains(words), "{words:?} is not in:\n{said}");
    }

    product.replace("outboard.toml", "8080", &product.ports[3].to_string());
    let (serve, request) = configuration.split_once('\n').expect("a server and a request");
    let serve = serve.replace("swoole/examples/product/", "").replace("outboard serve", "serve");
    let admin = product.scratch.path().join("admin.sock");
    let server = Launch::new(&Server::binary().to_string_lossy())
        .args(serve.split(' '))
        .arg("--admin")
        .arg(admin)
        .directory(product.folder())
        .start();
    let ready = |line: &str| line.contains("outboard status --admin").then_some(());
    server.wait_for(ready).unwrap_or_else(|output| panic!("it does not start: {output}"));
    let request = request.replace("8080", &product.ports[3].to_string());
    assert_eq!(product.types(&request), "the sum is 6");
}

#[test]
fn controllers_of_the_mvc_answer() {
    let product = Product::new();
    product.prints(&["start", "mvc"], &["mvc started"]);
    let mut client = product.client(1);
    for (path, page) in [
        ("/", "<h1>Hello, product</h1>"),
        ("/demo/index", "<h1>Hello, product</h1>"),
        ("/demo/index/json?name=Ada", r#"{"code":0,"data":{"name":"Ada"}}"#),
        ("/demo/async", "waited"),
        ("/demo/async/model", "the sum is 6"),
        ("/demo/async/parallel", r#"{"code":0,"data":{"sleep":true,"one":1,"six":6}}"#),
        ("/demo/async/error", "caught it"),
        ("/demo/async/callback", "called back"),
    ] {
        client.get(path).expect(200).saying(page);
    }
    client
        .get("/demo/index/jsonError")
        .expect(500)
        .saying(r#"{"code":1001,"msg":"no such thing"}"#);
    client.get("/demo/index/error").expect(500).saying("it &lt;failed&gt;[500]");
    for path in ["/favicon.ico", "/demo/none", "/demo/index/none", "/a/b/c/d"] {
        client.get(path).expect(404).saying("Not Found[404]");
    }
    let stats = product.client(2).get("/").expect(200).text();
    let stats: Value = serde_json::from_str(&stats).expect("the management port has JSON");
    assert_eq!([&stats["server"], &stats["worker_num"]], [&json!("mvc"), &json!(2)]);
}

#[test]
fn in_development_a_changed_file_reloads_the_server() {
    let product = Product::new();
    product.replace("conf/demo.php", "production", "development");
    let outboard = Server::binary();
    let mut run = Launch::new(&outboard.to_string_lossy()).arg("run");
    if rustix::process::geteuid().is_root() {
        run = run.args(["--user", "root"]);
    }
    let child = run.args(["server.php", "demo"]).directory(product.folder()).start();
    let ready = |line: &str| line.contains("outboard status --admin").then_some(());
    child.wait_for(ready).unwrap_or_else(|output| panic!("it does not start: {output}"));
    product.client(0).get("/").expect(200).saying("<h1>Hello, product</h1>");
    // Of another second than the files that were copied.
    product.replace("src/demo/Worker.php", "Hello, product", "Another page..");
    let changed = product.folder().join("src/demo/Worker.php");
    let later = Command::new("touch").args(["-d", "+2 seconds"]).arg(changed).status();
    assert!(later.expect("touch is there").success());
    eventually("the new page", || {
        product.client(0).get("/").expect(200).text() == "<h1>Another page..</h1>"
    });
}

#[test]
fn named_servers_run_it_as_well() {
    let servers = NamedServers::new();
    copy(&servers.path(""));
    servers.describe(
        "mvc",
        "listen = \"127.0.0.1:0\"\n[app.mvc]\nroot = \"../public\"\nmode = \"worker\"\n\
         [app.mvc.worker]\nscript = \"../product/server.php\"\narguments = [\"mvc\"]\n\
         starts_server = true\nconcurrency = 1000\n[app.mvc.tasks]\nworkers = 1\n",
    );
    servers.run("start", &["mvc"]).well();
    let mut client = Client::new(servers.address("mvc"));
    client.get("/demo/async/model").expect(200).saying("the sum is 6");
    servers.run("reload", &["mvc"]).well();
    client.get("/demo/index/index").expect(200).saying("<h1>Hello, product</h1>");
    servers.run("stop", &["mvc"]).well();
}
