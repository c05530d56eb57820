<?php

namespace Swoole\Server;

use Outboard\Engine\Swoole as Engine;

class Port
{
    public $setting = null;

    public $connections = null;

    /** @var array<string, callable> by event in lower case */
    private array $handlers = [];

    public readonly int $type;

    public readonly bool $ssl;

    public readonly int $sock;

    /** @internal */
    public function __construct(private readonly \Swoole\Server $server, public readonly string $host, public readonly int $port, int $sock_type, private readonly int $index)
    {
        if ($port < 0 || $port > 65535) {
            throw new \Swoole\Exception("invalid port $port: a port is 0 to 65535");
        }
        $this->type = $sock_type & ~SWOOLE_SSL;
        $this->ssl = ($sock_type & SWOOLE_SSL) !== 0;
        $this->sock = $index;
        $this->connections = new \Swoole\Connection\Iterator($index + 1);
    }

    public function set(array $settings): void
    {
        $this->setting = Engine\sizes($settings) + ($this->setting ?? []);
    }

    public function on(string $event_name, callable $callback): bool
    {
        $this->handlers[strtolower($event_name)] = $callback;
        return true;
    }

    public function getCallback(string $event_name): ?callable
    {
        return $this->handlers[strtolower($event_name)] ?? null;
    }

    /** @internal its own options; those of the server if it is its first port or has none */
    private function options(): array
    {
        $ofServer = $this->server->setting ?? [];
        return $this->index === 0 || $this->setting === null ? ($this->setting ?? []) + $ofServer : $this->setting;
    }

    /** @internal whether its clients speak HTTP */
    public function isHttp(bool $isHttpServer): bool
    {
        if (in_array($this->type, [SWOOLE_SOCK_UDP, SWOOLE_SOCK_UDP6, SWOOLE_SOCK_UNIX_DGRAM], true)) {
            return false;
        }
        if (isset($this->setting['open_http_protocol'])) {
            return (bool) $this->setting['open_http_protocol'];
        }
        if (isset($this->handlers['receive'])) {
            return false;
        }
        return isset($this->handlers['request']) || ($isHttpServer && ($this->server->setting['open_http_protocol'] ?? true));
    }

    /** @internal for `outboard run` */
    public function description(bool $isHttpServer): array
    {
        return [
            'host' => $this->host,
            'port' => $this->port,
            'type' => $this->type,
            'ssl' => $this->ssl,
            'http' => $this->isHttp($isHttpServer),
            'settings' => (object) Engine\plain($this->setting ?? []),
        ];
    }

    /** @internal for the gateway: swoole/stream-server/src/settings.rs */
    public function streamSettings(): array
    {
        $options = $this->options();
        $check = (int) ($options['heartbeat_check_interval'] ?? 0);
        $idle = (float) ($options['heartbeat_idle_time'] ?? $check * 2);
        $output = (int) ($options['buffer_output_size'] ?? $options['output_buffer_size'] ?? 8 << 20);
        return $this->framing($options) + [
            'package_bytes' => (int) ($options['package_max_length'] ?? 2 << 20),
            'idle_ms' => (int) max($idle * 1000, 0),
            'output_bytes' => $output,
            'high_bytes' => (int) ($options['buffer_high_watermark'] ?? 0),
            'low_bytes' => (int) ($options['buffer_low_watermark'] ?? 0),
            'waits_for_confirmation' => !empty($options['enable_delay_receive']),
            'has_delay' => !($options['open_tcp_nodelay'] ?? true),
        ];
    }

    /** @internal the length of the message that begins so: 0, it is not known yet; below 0, there is none */
    public function lengthOf(string $bytes): int
    {
        $function = $this->options()['package_length_func'] ?? null;
        return $function === null ? -1 : (int) $function($bytes);
    }

    private function framing(array $options): array
    {
        $mark = bin2hex((string) ($options['package_eof'] ?? "\r\n\r\n"));
        if (!empty($options['open_eof_split'])) {
            return ['framing' => 'splits', 'mark' => $mark];
        }
        if (!empty($options['open_eof_check'])) {
            return ['framing' => 'ends', 'mark' => $mark];
        }
        if (empty($options['open_length_check'])) {
            return [];
        }
        if (isset($options['package_length_func'])) {
            if (!is_callable($options['package_length_func'])) {
                throw new \Swoole\Exception('the option package_length_func is not callable');
            }
            return ['framing' => 'measured'];
        }
        $type = (string) ($options['package_length_type'] ?? 'N');
        if (strlen($type) !== 1 || !str_contains('cCsSnvlLNVqQJP', $type)) {
            throw new \Swoole\Exception("Unknown package_length_type name '$type'");
        }
        return [
            'framing' => 'length',
            'length_type' => $type,
            'length_offset' => (int) ($options['package_length_offset'] ?? 0),
            'body_offset' => (int) ($options['package_body_offset'] ?? 0),
        ];
    }
}
