<?php

declare(strict_types=1);

namespace Outboard\Shim\RoadRunner;

use Outboard\Psr\Emitter;
use Outboard\Psr\Factories;
use Outboard\Psr\RequestReader;
use Outboard\Runtimes;
use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestFactoryInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Message\UploadedFileFactoryInterface;
use Psr\Http\Message\UriFactoryInterface;

/**
 * Spiral\RoadRunner\Http\PSR7Worker. The loop runs in a fiber (Loop), which is suspended while it waits for a
 * request, and resumed for each.
 */
final class Psr7Worker
{
    private readonly RequestReader $reader;

    private readonly Emitter $emitter;

    private bool $isHead = false;

    public function __construct(
        private readonly Worker $worker,
        ServerRequestFactoryInterface $requests,
        StreamFactoryInterface $streams,
        UploadedFileFactoryInterface $uploads,
    ) {
        $uris = $requests instanceof UriFactoryInterface ? $requests : Factories::find()->uris;
        $this->reader = new RequestReader(new Factories($requests, $uris, $streams, $uploads));
        $this->emitter = new Emitter();
    }

    /** The next request; null when the worker is to stop. */
    public function waitRequest(): ?ServerRequestInterface
    {
        while (\Fiber::suspend() !== null) {
            try {
                $request = $this->reader->read(Runtimes::here()->body());
                $this->isHead = $request->getMethod() === 'HEAD';
                return $request;
            } catch (\InvalidArgumentException $refused) {
                \Outboard\log('a request that PSR-7 objects do not take: ' . $refused->getMessage(), LOG_NOTICE);
                http_response_code(400);
            }
        }
        return null;
    }

    public function respond(ResponseInterface $response): void
    {
        $this->emitter->emit($response, Runtimes::here()->output(), !$this->isHead);
    }

    public function getWorker(): Worker
    {
        return $this->worker;
    }
}
