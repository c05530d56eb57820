<?php

declare(strict_types=1);

namespace Outboard\Mvc;

use Outboard\Request;

/**
 * The parameters of an action, or of the constructor of an Input, with their types and rules; reflected once,
 * filled for each request.
 */
final class Arguments
{
    /** @param list<\Closure(Context, array<string, string>): mixed> $sources each adds its error to the array */
    private function __construct(private readonly array $sources)
    {
    }

    /** Null if there are no parameters. */
    public static function of(\ReflectionMethod $method): ?self
    {
        $sources = [];
        foreach ($method->getParameters() as $parameter) {
            $sources[] = self::source($parameter);
        }
        return $sources === [] ? null : new self($sources);
    }

    /**
     * @return list<mixed>
     * @throws Problem 422 with a sentence per field
     */
    public function from(Context $context): array
    {
        /** @var array<string, string> $wrong */
        $wrong = [];
        $values = [];
        foreach ($this->sources as $source) {
            $values[] = $source($context, $wrong);
        }
        if ($wrong !== []) {
            $sentences = array_map(static fn ($field, $why) => "$field $why", array_keys($wrong), $wrong);
            throw new Problem(422, ucfirst(implode('; ', $sentences)) . '.', fields: $wrong);
        }
        return $values;
    }

    /** The pattern of a route's variable. */
    public static function pattern(\ReflectionMethod $method, string $name): string
    {
        foreach ($method->getParameters() as $parameter) {
            if ($parameter->name === $name) {
                return self::type($parameter) === 'int' ? '-?\d+' : '[^/]+';
            }
        }
        throw new \LogicException("$method->class::$method->name() has no parameter \$$name for its route");
    }

    private static function type(\ReflectionParameter $parameter): string
    {
        $type = $parameter->getType();
        return $type instanceof \ReflectionNamedType ? $type->getName() : 'mixed';
    }

    /** @return \Closure(Context, array<string, string>): mixed */
    private static function source(\ReflectionParameter $parameter): \Closure
    {
        $type = self::type($parameter);
        return match (true) {
            $type === Request::class => static fn (Context $context) => $context->request,
            $type === Context::class => static fn (Context $context) => $context,
            $type === Session::class => static fn (Context $context) => $context->session(),
            is_subclass_of($type, Input::class) => self::input(new \ReflectionClass($type)),
            class_exists($type) && !enum_exists($type), interface_exists($type) =>
                static fn (Context $context) => $context->services()->get($type),
            default => self::value($parameter, $type),
        };
    }

    /**
     * @param \ReflectionClass<Input> $class
     * @return \Closure(Context, array<string, string>): mixed
     */
    private static function input(\ReflectionClass $class): \Closure
    {
        $arguments = self::of($class->getMethod('__construct'));
        return static fn (Context $context) => $class->newInstance(...$arguments?->from($context) ?? []);
    }

    /** @return \Closure(Context, array<string, string>): mixed */
    private static function value(\ReflectionParameter $parameter, string $type): \Closure
    {
        $name = $parameter->name;
        $rules = array_map(
            static fn ($rule) => $rule->newInstance(),
            $parameter->getAttributes(Rule::class, \ReflectionAttribute::IS_INSTANCEOF),
        );
        $isOptional = $parameter->isDefaultValueAvailable() || $parameter->allowsNull();
        $default = $parameter->isDefaultValueAvailable() ? $parameter->getDefaultValue() : null;
        return static function (Context $context, array &$wrong) use ($name, $type, $rules, $isOptional, $default): mixed {
            $given = $context->input()[$name] ?? null;
            if ($given === null || ($given === '' && $isOptional)) {
                if (!$isOptional) {
                    $wrong[$name] = 'is missing';
                }
                return $default;
            }
            $value = self::convert($given, $type);
            if ($value === null) {
                $wrong[$name] = self::expected($type);
                return $default;
            }
            foreach ($rules as $rule) {
                $wrong += array_filter([$name => $rule->check($value)]);
            }
            return $value;
        };
    }

    /** Null if it cannot be converted. */
    private static function convert(mixed $given, string $type): mixed
    {
        return match ($type) {
            'string' => is_scalar($given) ? trim((string) $given) : null,
            'int' => filter_var($given, FILTER_VALIDATE_INT, FILTER_NULL_ON_FAILURE),
            'float' => filter_var($given, FILTER_VALIDATE_FLOAT, FILTER_NULL_ON_FAILURE),
            'bool' => filter_var($given, FILTER_VALIDATE_BOOL, FILTER_NULL_ON_FAILURE),
            'array' => is_array($given) ? $given : null,
            default => is_subclass_of($type, \BackedEnum::class) ? self::case($given, $type) : $given,
        };
    }

    private static function case(mixed $given, string $type): ?\BackedEnum
    {
        foreach (self::cases($type) as $case) {
            if (is_scalar($given) && (string) $case->value === (string) $given) {
                return $case;
            }
        }
        return null;
    }

    private static function expected(string $type): string
    {
        return match ($type) {
            'string' => 'is not a text',
            'int' => 'is not a whole number',
            'float' => 'is not a number',
            'bool' => 'is neither yes nor no',
            'array' => 'is not a list',
            default => 'is none of ' . implode(', ', array_column(self::cases($type), 'value')),
        };
    }

    /** @return list<\BackedEnum> empty for other types */
    private static function cases(string $type): array
    {
        // @mago-expect analysis:possibly-static-access-on-interface - a subtype of BackedEnum is an enum
        return is_subclass_of($type, \BackedEnum::class) ? $type::cases() : [];
    }
}
