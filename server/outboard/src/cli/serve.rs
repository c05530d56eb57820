//! Arguments: what is served, and how: `serve`, `run` and `trust`.

use super::named::InstanceDirs;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The directory of the application, or a configuration file.
    #[arg(value_name = "DIR|FILE.toml")]
    pub(crate) dir: Option<PathBuf>,
    /// The configuration file.
    #[arg(long, short, value_name = "FILE", conflicts_with = "dir")]
    pub(crate) config: Option<PathBuf>,
    /// Serve the directory in development mode: changes take effect at once, pages reload, and errors
    /// are shown with their source code.
    #[arg(long, conflicts_with = "name")]
    pub(crate) dev: bool,
    /// Serve a named server in the foreground, for a service manager.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["dir", "config", "admin"])]
    pub(crate) name: Option<String>,
    /// With --name: continue in the background once it is ready. Used by `outboard start`.
    #[arg(long, hide = true, requires = "name")]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) dirs: InstanceDirs,
    /// Address for a directory: ADDRESS:PORT or unix:PATH [default: 127.0.0.1:8080].
    ///
    /// Port 0 selects a free port. A configuration file has `listen` instead.
    #[arg(long, short, value_name = "ADDRESS", conflicts_with = "name")]
    pub(crate) listen: Option<String>,
    /// Serve the directory as this domain, over HTTPS with a certificate that is obtained and renewed
    /// automatically. May be given more than once.
    ///
    /// This agrees to the terms of service of the certificate authority. Ports 443 and 80 are opened; port
    /// 80 redirects to HTTPS. `--listen` sets the address of HTTPS instead.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "dev", "config"])]
    pub(crate) domain: Vec<String>,
    /// With --domain: the address that the certificate authority may write to.
    #[arg(long, value_name = "ADDRESS", requires = "domain")]
    pub(crate) email: Option<String>,
    /// With --domain: the address of HTTP [default: port 80].
    #[arg(long, value_name = "ADDRESS", requires = "domain")]
    pub(crate) listen_http: Option<String>,
    /// With --domain: the URL of the directory of another ACME authority, or `local`.
    #[arg(long, value_name = "URL", requires = "domain")]
    pub(crate) acme_directory: Option<String>,
    /// With --domain: a certificate (PEM) that is trusted for the connection to the ACME authority.
    #[arg(long, value_name = "FILE", requires = "domain")]
    pub(crate) acme_ca: Option<PathBuf>,
    /// With --domain: the directory of accounts, keys and certificates [default:
    /// /var/lib/outboard/certificates, or ~/.local/share/outboard/certificates].
    #[arg(long, value_name = "DIR", requires = "domain")]
    pub(crate) acme_storage: Option<PathBuf>,
    /// User that PHP runs as if root starts the server, instead of the configured one; `root` runs
    /// everything as root.
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// The admin socket, for `outboard status`.
    #[arg(long, value_name = "SOCKET")]
    pub(crate) admin: Option<PathBuf>,
    /// The PHP host to use instead of the one in the directory of this program.
    #[arg(long, value_name = "FILE")]
    pub(crate) php_host: Option<PathBuf>,
    /// Take over the sockets of the server at the other end of standard input. Used by `outboard upgrade`.
    #[arg(long, hide = true)]
    pub(crate) take_over: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The program.
    #[arg(value_name = "FILE.php")]
    pub(crate) script: PathBuf,
    /// Its arguments.
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<String>,
    /// Address to listen on instead of the program's own.
    #[arg(long, short, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// A setting of php.ini, as in `php -d memory_limit=1G`.
    #[arg(long = "define", short = 'd', value_name = "NAME[=VALUE]")]
    pub(crate) ini: Vec<String>,
    /// User that the program runs as if root starts it [default: www-data, or nobody].
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// The admin socket, for `outboard status`.
    #[arg(long, value_name = "SOCKET")]
    pub(crate) admin: Option<PathBuf>,
    /// The PHP host to use instead of the one in the directory of this program.
    #[arg(long, value_name = "FILE")]
    pub(crate) php_host: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TrustArguments {
    /// Do not trust it any more.
    #[arg(long)]
    pub(crate) remove: bool,
    /// The directory of certificates [default: /var/lib/outboard/certificates for root, otherwise
    /// ~/.local/share/outboard/certificates].
    #[arg(long, value_name = "DIR")]
    pub(crate) storage: Option<PathBuf>,
}
