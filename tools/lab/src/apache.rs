//! Apache prefork with mod_php: one process per connection, PHP inside it.

use std::path::Path;
use std::process::Command;

use crate::error::Result;
use crate::group::Group;
use crate::lab::Lab;
use crate::request_spec::HOST;
use crate::stack::Stack;
use crate::system::{free_address, is_root, program, write};

/// Debian's MaxRequestWorkers for prefork: one process per connection up to this number.
pub const PROCESSES: usize = 150;

/// Apache with mod_php, opcache and a fixed number of processes, all started at once.
pub fn with_mod_php(lab: &mut Lab, root: &Path, processes: usize) -> Result<Stack> {
    let name = "apache+mod_php";
    let binary = program(&["/usr/sbin/apache2"], "apache2")?;
    let module = format!("/usr/lib/apache2/modules/libphp{}.so", lab.php.version());
    program(&[&module], "libapache2-mod-php")?;
    let mut group = Group::new(lab, name)?;
    let directory = lab.directory(name)?;
    lab.php.ini_file(&directory.join("php.ini"))?;
    let address = free_address()?;
    let user = if is_root() { "User www-data\nGroup www-data" } else { "" };
    let config = format!(
        "{user}
ServerRoot {directory}
ServerName {HOST}
PidFile {directory}/apache.pid
Mutex file:{directory}
ErrorLog {directory}/error.log
LogLevel warn
Listen {address}
ListenBacklog 4096
LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
LoadModule mime_module /usr/lib/apache2/modules/mod_mime.so
LoadModule php_module {module}
TypesConfig /etc/mime.types
PHPIniDir {directory}
ServerLimit {processes}
MaxRequestWorkers {processes}
StartServers {processes}
MinSpareServers {processes}
MaxSpareServers {processes}
MaxConnectionsPerChild 0
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 60
DocumentRoot {root}
DirectoryIndex index.php
<Directory {root}>
  AllowOverride None
  Require all granted
</Directory>
<FilesMatch \"\\.php$\">
  SetHandler application/x-httpd-php
</FilesMatch>
",
        directory = directory.display(),
        root = root.display(),
    );
    let file = directory.join("apache.conf");
    write(&file, config)?;
    let mut command = Command::new(binary);
    command.env("PHP_INI_SCAN_DIR", lab.php.scan_directory());
    command.arg("-DFOREGROUND").arg("-f").arg(&file);
    group.start(lab, &command)?;
    Stack { name, address, group }.await_response()
}
