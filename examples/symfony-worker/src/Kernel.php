<?php

declare(strict_types=1);

namespace App;

use App\Controller\Notes;
use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Bundle\TwigBundle\TwigBundle;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\HttpKernel\Kernel as BaseKernel;
use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;

final class Kernel extends BaseKernel
{
    use MicroKernelTrait;

    public function registerBundles(): iterable
    {
        return [new FrameworkBundle(), new TwigBundle()];
    }

    public function getProjectDir(): string
    {
        return dirname(__DIR__);
    }

    private function configureContainer(ContainerConfigurator $container): void
    {
        $container->extension('framework', [
            'secret' => 'of an example',
            'session' => ['storage_factory_id' => 'session.storage.factory.native', 'cookie_samesite' => 'lax'],
            'router' => ['utf8' => true],
        ]);
        $container->extension('twig', ['default_path' => '%kernel.project_dir%/templates', 'strict_variables' => true]);
        $container->services()->defaults()->autowire()->autoconfigure()
            ->set(Journal::class)
            ->set(Notes::class)->public()->tag('controller.service_arguments');
    }

    private function configureRoutes(RoutingConfigurator $routes): void
    {
        $routes->add('notes', '/')->controller([Notes::class, 'list'])->methods(['GET']);
        $routes->add('add', '/notes')->controller([Notes::class, 'add'])->methods(['POST']);
        $routes->add('note', '/notes/{number<\d+>}')->controller([Notes::class, 'show'])->methods(['GET']);
        $routes->add('worker', '/worker')->controller([Notes::class, 'worker'])->methods(['GET']);
    }
}
