<?php

declare(strict_types=1);

namespace Outboard\Tests\Psr;

use Outboard\Psr\Factories;
use PHPUnit\Framework\TestCase;

/** Runs every test of the bridge with each PSR-7 package. */
abstract class PsrTestCase extends TestCase
{
    /** @return array<string, array{Factories}> */
    public static function packages(): array
    {
        return [
            'nyholm/psr7' => [Factories::of(new \Nyholm\Psr7\Factory\Psr17Factory())],
            'guzzlehttp/psr7' => [Factories::of(new \GuzzleHttp\Psr7\HttpFactory())],
            'slim/psr7' => [new Factories(
                new \Slim\Psr7\Factory\ServerRequestFactory(),
                new \Slim\Psr7\Factory\UriFactory(),
                new \Slim\Psr7\Factory\StreamFactory(),
                new \Slim\Psr7\Factory\UploadedFileFactory(),
            )],
        ];
    }
}
