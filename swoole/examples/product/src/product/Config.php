<?php

namespace product;

/** The settings of conf/NAME.php, with the defaults of its environment. */
class Config
{
    public $root;

    public $name;

    private $values;

    public function __construct($root, $name)
    {
        $this->root = $root;
        $this->name = $name;
        if (!in_array($name, self::names($root), true)) {
            throw new \RuntimeException("there is no server $name: conf/$name.php is missing");
        }
        $this->values = require "$root/conf/$name.php";
    }

    public static function names($root)
    {
        return array_map(function ($file) {
            return basename($file, '.php');
        }, glob("$root/conf/*.php"));
    }

    public function get($key, $default = null)
    {
        return isset($this->values[$key]) ? $this->values[$key] : $default;
    }

    public function isDevelopment()
    {
        return $this->get('environment') === 'development';
    }

    /** For swoole_server::set(). Development has one worker, in the foreground. */
    public function setting()
    {
        $development = ['daemonize' => false, 'worker_num' => 1, 'max_request' => 100];
        $setting = ($this->isDevelopment() ? $development : []) + $this->get('server_setting', []);
        return $setting + ['log_file' => "$this->root/var/log/$this->name.log"];
    }

    public function pidFile($process)
    {
        return "$this->root/var/run/$this->name-$process.pid";
    }

    /** The process id of "master" or "manager" if it runs, otherwise 0. */
    public function pid($process)
    {
        $pid = (int) @file_get_contents($this->pidFile($process));
        return $pid > 0 && posix_kill($pid, 0) ? $pid : 0;
    }
}
