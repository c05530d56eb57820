<?php

declare(strict_types=1);

namespace Outboard\Psr;

use Psr\Http\Message\ServerRequestFactoryInterface;
use Psr\Http\Message\StreamFactoryInterface;
use Psr\Http\Message\UploadedFileFactoryInterface;
use Psr\Http\Message\UriFactoryInterface;

/** The factories of PSR-7 objects (PSR-17). */
final class Factories
{
    /** One object for all four, or one for each: requests, URIs, streams, uploaded files. */
    private const KNOWN = [
        ['Nyholm\Psr7\Factory\Psr17Factory'],
        ['GuzzleHttp\Psr7\HttpFactory'],
        [
            'Slim\Psr7\Factory\ServerRequestFactory',
            'Slim\Psr7\Factory\UriFactory',
            'Slim\Psr7\Factory\StreamFactory',
            'Slim\Psr7\Factory\UploadedFileFactory',
        ],
        [
            'Laminas\Diactoros\ServerRequestFactory',
            'Laminas\Diactoros\UriFactory',
            'Laminas\Diactoros\StreamFactory',
            'Laminas\Diactoros\UploadedFileFactory',
        ],
    ];

    public function __construct(
        public readonly ServerRequestFactoryInterface $requests,
        public readonly UriFactoryInterface $uris,
        public readonly StreamFactoryInterface $streams,
        public readonly UploadedFileFactoryInterface $files,
    ) {
    }

    /** From one object that implements all, as in nyholm/psr7 and guzzlehttp/psr7. */
    public static function of(
        ServerRequestFactoryInterface&UriFactoryInterface&StreamFactoryInterface&UploadedFileFactoryInterface $all,
    ): self {
        return new self($all, $all, $all, $all);
    }

    /** From the first PSR-7 package that is installed. */
    public static function find(): self
    {
        foreach (self::KNOWN as $classes) {
            if (class_exists($classes[0])) {
                // @mago-expect analysis:unknown-class-instantiation - from() checks them
                return self::from(array_map(static fn (string $class): object => new $class(), $classes));
            }
        }
        throw new \LogicException('no PSR-7 package is installed: run `composer require nyholm/psr7`');
    }

    /** @param non-empty-list<object> $factories */
    private static function from(array $factories): self
    {
        $requests = $factories[0];
        $uris = $factories[1] ?? $requests;
        $streams = $factories[2] ?? $requests;
        $files = $factories[3] ?? $requests;
        \assert($requests instanceof ServerRequestFactoryInterface && $uris instanceof UriFactoryInterface);
        \assert($streams instanceof StreamFactoryInterface && $files instanceof UploadedFileFactoryInterface);
        return new self($requests, $uris, $streams, $files);
    }
}
