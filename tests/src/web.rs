//! A web server as a script's backend, with and without TLS.

use crate::{Certificate, Child, Launch, Scratch};
use std::path::PathBuf;

/// A running nginx, reached through Unix sockets alone. It has a certificate for `localhost`.
#[derive(Debug)]
pub struct Web {
    folder: PathBuf,
    _child: Child,
    _scratch: Scratch,
}

impl Web {
    /// Makes the certificate, starts the server and returns when it answers.
    pub fn start() -> Web {
        let scratch = Scratch::new("web");
        let folder = scratch.path().to_owned();
        Certificate::make(&folder, "localhost", "DNS:localhost,IP:127.0.0.1");
        let text = configuration(&scratch);
        let child = Launch::new("/usr/sbin/nginx")
            .args(["-e", "stderr", "-c"])
            .arg(scratch.file("nginx.conf", text))
            .start();
        child
            .wait_for(|line| line.contains("start worker process ").then_some(()))
            .unwrap_or_else(|output| panic!("nginx does not start: {output}"));
        Web { folder, _child: child, _scratch: scratch }
    }

    /// The socket for HTTP.
    pub fn plain(&self) -> PathBuf {
        self.folder.join("http.sock")
    }

    /// The socket for HTTPS.
    pub fn tls(&self) -> PathBuf {
        self.folder.join("https.sock")
    }

    /// The certificate, which is its own authority.
    pub fn certificate(&self) -> PathBuf {
        self.folder.join("localhost.pem")
    }
}

fn configuration(scratch: &Scratch) -> String {
    format!(
        r#"daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log stderr notice;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  default_type text/plain;
  server {{
    listen unix:{folder}/http.sock;
    listen unix:{folder}/https.sock ssl;
    ssl_certificate {folder}/localhost.pem; ssl_certificate_key {folder}/localhost.key;
    location = /answer {{ return 200 "first line\nthe answer\n"; }}
    location = /another {{ return 200 "another answer\n"; }}
  }}
}}
"#,
        folder = scratch.path().display()
    )
}
