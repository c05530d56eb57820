<?php

namespace product;

/** The commands, which find servers by their pid files and reach them by signals. */
class Manager
{
    const COMMANDS = ['start', 'stop', 'restart', 'reload', 'status', 'list'];

    const SECONDS = 60;

    private $root;

    public function __construct($root)
    {
        $this->root = $root;
    }

    /** Returns the exit code. Without names a command is for all servers. */
    public function main(array $arguments)
    {
        $command = (string) array_shift($arguments);
        if (!in_array($command, self::COMMANDS, true)) {
            echo 'usage: php product.php ', implode('|', self::COMMANDS), " [NAME...]\n";
            return 2;
        }
        $failed = 0;
        foreach ($arguments ?: Config::names($this->root) as $name) {
            try {
                $failed |= (int) !$this->{$command . 'Server'}(new Config($this->root, $name));
            } catch (\RuntimeException $error) {
                fwrite(STDERR, $error->getMessage() . "\n");
                $failed = 1;
            }
        }
        return $failed;
    }

    private function startServer(Config $config)
    {
        if ($config->pid('master')) {
            return $this->say($config, 'is already running');
        }
        // What runs programs: PHP itself, if it has the extension.
        $program = getenv('PRODUCT_PHP') ?: PHP_BINARY;
        $command = $program . ' ' . escapeshellarg("$this->root/server.php") . ' ' . escapeshellarg($config->name);
        if ($config->isDevelopment()) {
            passthru($command, $code);
            return $code === 0;
        }
        // Not a pipe, which would stay open in the background.
        $output = "$this->root/var/log/$config->name.start";
        exec($command . ' > ' . escapeshellarg($output) . ' 2>&1', $lines, $code);
        if ($code !== 0) {
            return !$this->say($config, "did not start:\n" . trim(file_get_contents($output)));
        }
        $started = $this->await(function () use ($config) {
            return $config->pid('master') && $config->pid('manager');
        });
        return $started ? $this->say($config, 'started') : !$this->say($config, 'is still starting');
    }

    private function stopServer(Config $config)
    {
        $pid = $config->pid('master');
        if (!$pid) {
            return $this->say($config, 'is not running');
        }
        posix_kill($pid, SIGTERM);
        $stopped = $this->await(function () use ($pid) {
            return !posix_kill($pid, 0);
        });
        return $stopped ? $this->say($config, 'stopped') : !$this->say($config, 'is still stopping');
    }

    private function restartServer(Config $config)
    {
        return $this->stopServer($config) && $this->startServer($config);
    }

    /** Workers finish their requests and are replaced. */
    private function reloadServer(Config $config)
    {
        $pid = $config->pid('manager');
        if (!$pid) {
            return !$this->say($config, 'is not running');
        }
        return posix_kill($pid, SIGUSR1) && $this->say($config, 'reloads');
    }

    private function statusServer(Config $config)
    {
        $pid = $config->pid('master');
        echo "server       $config->name\n";
        echo 'environment  ', $config->get('environment'), "\n";
        echo 'php          ', PHP_VERSION, "\n";
        echo 'master       ', $pid ?: '-', "\n";
        echo 'manager      ', $config->pid('manager') ?: '-', "\n";
        echo 'status       ', $pid ? 'running' : 'stopped', "\n";
        return $pid > 0;
    }

    private function listServer(Config $config)
    {
        $addresses = array_map(function ($listen) {
            return implode(':', $listen);
        }, $config->get('listen'));
        printf("%-12s %-8s %s\n", $config->name, $config->pid('master') ? 'running' : 'stopped', implode(' ', $addresses));
        return true;
    }

    private function await(callable $condition)
    {
        for ($until = microtime(true) + self::SECONDS; microtime(true) < $until; usleep(20000)) {
            if ($condition()) {
                return true;
            }
        }
        return false;
    }

    private function say(Config $config, $text)
    {
        echo "$config->name $text\n";
        return true;
    }
}
